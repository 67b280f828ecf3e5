"""The whole site as one archive, with a server for a computer without internet."""

import zipfile
from pathlib import Path

README = """\
The site of the course, to be read without internet.

All pages open from the folder html with any browser: html/index.html.
Notebooks that run in the browser need a server, since a browser loads no program from a plain
file. Python has one:

    python serve.py

Then open the address that it shows.
"""


def name_icon(page):
    """Give the first page, which Jupyter Book writes last, the icon of all others."""
    text = page.read_text(encoding="utf-8")
    link = '<link rel="icon" href="_static/favicon.svg">'
    if link not in text:
        page.write_text(f"{link}\n{text}", encoding="utf-8")


def pack(html, target):
    """Write the built site into an archive; return its size in bytes.

    Parameters
    ----------
    html : Path
        The built site.
    target : Path
        The archive, ``site.zip``; the folder in it is called ``site``.
    """
    part = target.with_name(f".{target.name}.part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("site/README.txt", README)
        archive.write(Path(__file__).with_name("serve.py"), "site/serve.py")
        for path in sorted(html.rglob("*")):
            if path.is_file():
                archive.write(path, f"site/html/{path.relative_to(html).as_posix()}")
    part.replace(target)
    return target.stat().st_size
