"""Write the generated topic table into README.md: ``make readme``."""

from course_book import data, readme

path = data.ROOT / "README.md"
text = readme.with_table(path.read_text(encoding="utf-8"), data.topics())
path.write_text(text, encoding="utf-8")
