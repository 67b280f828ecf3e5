"""Pages as plain Markdown, for notebooks that are read outside of the book.

A notebook program knows neither directives nor roles: here each becomes what it shows.
"""

import ast
import functools
import re
import textwrap

from pybtex.database import parse_file

from course_book import data, selftest
from course_book.results import quote

OPEN = re.compile(r"^(?P<fence>`{3,}|:{3,})\{(?P<name>[a-z:-]+)\}\s*(?P<title>.*)$")
OPTION = re.compile(r"^:(?P<key>[a-z-]+):\s*(?P<value>.*)$")
ROLE = re.compile(r"\{(?P<name>[a-z:]+)\}`(?P<text>[^`]+)`")
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?!https?://)(?P<target>[^)\s]*\.md[^)\s]*)\)")
TARGET = re.compile(r"^\(([\w-]+)\)=\s*\n+#+ (.*)$", re.MULTILINE)
NAMED = re.compile(
    r"^[`:]{3,}\{(\w+)\}\s*(.*)\n(?::.*\n)*?:(?:label|name): (\S+)", re.MULTILINE
)
SKIPPED = ("solution-end", "bibliography")
ON_THE_PAGE = "*The page of the book shows more here.*"


@functools.cache
def _equations():
    return {row.label: row.number for row in data.equations()}


@functools.cache
def titles(root=data.ROOT):
    """Return what each label of the book is called: sections, exercises, figures, pages."""
    found = {}
    for path in sorted((root / "book").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        found |= dict(TARGET.findall(text))
        for kind, title, label in NAMED.findall(text):
            found[label] = title if kind == "exercise" and title else f"the {kind}"
        heading = re.search(r"^# (.*)$", text, re.MULTILINE)
        if heading:
            found[path.stem] = heading[1]
    return found


@functools.cache
def _bibliography(root=data.ROOT):
    return parse_file(root / "book" / "references.bib").entries


def author_year(key):
    """Return authors and year of a source, as a text cites it."""
    if key not in _bibliography():  # the build of the book reports it
        return key, "no source"
    entry = _bibliography()[key]
    persons = entry.persons.get("author") or entry.persons.get("editor") or []
    names = [" ".join(person.prelast_names + person.last_names) for person in persons]
    shown = names[0] + " et al." if len(names) > 2 else " and ".join(names)
    return re.sub(r"[{}]", "", shown), entry.fields.get("year", "no year")


def _role(match):
    name, text = match["name"], match["text"]
    label = re.search(r"<([^>]+)>$", text)
    if name == "eq":
        return f"({_equations()[text]})" if text in _equations() else "the equation"
    if name.startswith("cite"):
        cited = [author_year(key.strip()) for key in text.split(",")]
        form = "{} ({})" if name == "cite:t" else "{}, {}"
        joined = "; ".join(form.format(*pair) for pair in cited)
        return joined if name == "cite:t" else f"({joined})"
    if name == "result":
        return quote(text)[0]
    if label:
        return text[: label.start()].strip()
    if name in ("ref", "numref", "doc"):
        return titles().get(text.rpartition("/")[2], text)
    return text


def inline(text):
    """Return text with its roles, and its links to other pages, as they read."""
    return LINK.sub(lambda m: m["text"], ROLE.sub(_role, text))


def _listing(path, options, root):
    """Return the source that a ``literalinclude`` shows."""
    source = (root / "book" / path).resolve().read_text(encoding="utf-8")
    name = options.get("pyobject")
    if name:
        node = ast.parse(source)
        for part in name.split("."):  # a class, and then its method
            node = next(n for n in node.body if getattr(n, "name", None) == part)
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        source = textwrap.dedent("\n".join(source.splitlines()[first - 1 : node.end_lineno]))
    return f"```python\n{source.rstrip()}\n```"


def _directive(name, title, options, body, root):
    """Return what a directive shows, as Markdown."""
    title = inline(title)
    if name in SKIPPED:
        return ""
    if name == "math":
        number = _equations().get(options.get("label"))
        tag = f"\n\\tag{{{number}}}" if number else ""
        return f"$$\n{body.strip()}{tag}\n$$"
    if name == "literalinclude":
        return _listing(title, options, root)
    if name == "selftest":
        return inline(selftest.markdown(title, root))
    if name in ("figure", "image", "interactive"):
        caption = f"\n\n{plain(body, root)}" if body.strip() else ""
        return f"*Figure: {options.get('alt', title)}*{caption}"
    inner = plain(body, root).strip()
    if name in ("admonition", "note", "warning", "tip", "important", "seealso"):
        lines = [f"**{title or name.capitalize()}**", "", *inner.splitlines()]
        return "\n".join(f"> {line}".rstrip() for line in lines)
    if name == "dropdown":
        return f"<details><summary>{title}</summary>\n\n{inner}\n\n</details>"
    if name in ("exercise", "tab-item"):
        kind = "Exercise" if name == "exercise" else ""
        return f"**{': '.join(filter(None, (kind, title)))}**\n\n{inner}"
    if name in ("solution", "solution-start"):
        return f"**Solution**: {titles().get(title, title)}\n\n{inner}".rstrip()
    return inner or ("" if name == "glossary" else ON_THE_PAGE)


def _options(lines):
    """Split the lines of a directive into its options and its body."""
    options = {}
    while lines and (match := OPTION.match(lines[0])):
        options[match["key"]] = match["value"]
        lines = lines[1:]
    return options, "\n".join(lines)


def _closing(lines, start, fence):
    """Return the index of the line that closes the fence opened before ``start``."""
    for i in range(start, len(lines)):
        line = lines[i].strip()
        if len(line) >= len(fence) and set(line) == {fence[0]}:
            return i
    return len(lines)


def plain(text, root=data.ROOT):
    """Return the text of a page, or of a part of it, as plain Markdown."""
    lines, done, i = text.splitlines(), [], 0
    while i < len(lines):
        line = lines[i]
        opening = OPEN.match(line)
        if opening:
            end = _closing(lines, i + 1, opening["fence"])
            options, body = _options(lines[i + 1 : end])
            shown = _directive(opening["name"], opening["title"], options, body, root)
            done += ["", shown, ""] if shown else []
            i = end + 1
        elif re.match(r"^`{3,}", line):  # a listing: as it is
            end = _closing(lines, i + 1, re.match(r"^`+", line)[0])
            done += lines[i : end + 1]
            i = end + 1
        else:
            if not re.fullmatch(r"\([\w-]+\)=\s*|%.*", line):
                done.append(inline(line))
            i += 1
    return re.sub(r"\n{3,}", "\n\n", "\n".join(done)).strip("\n")
