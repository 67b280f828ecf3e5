"""The built pages as one document for paper: every id and link is made unique and stays inside.

What a page unfolds, plays or lets the reader move is laid open: tabs stand one below the other,
a folded hint is open, an interactive figure has its static form. Code that a page folds away is
left out, solutions and answers of the self-tests are at the end, each chapter's together.
"""

import html
import re
from collections import Counter
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml
from bs4 import BeautifulSoup

from course_site.pins import SiteError

SOLUTIONS = "solutions"
# On a page these are controls, or say how to use it.
DROPPED = (
    "a.headerlink, p.course-run, span.run-notebook, span.book-as-pdf, button, input, script, "
    "noscript, div.toctree-wrapper, details.above-input, details.below-input, "
    ".sd-summary-state-marker, .selftest-count"
)
CODE = re.compile("<pre>.*?</pre>", re.DOTALL)
ASIDE = "code-"
SHORT = 30  # lines of code that stay on one page
# Neither a menu nor a form for screen readers, which paper cannot hold: half of the elements.
PLAIN_FORMULAS = """
<script>window.MathJax = {...window.MathJax}; MathJax.options = {...MathJax.options,
enableMenu: false, enableAssistiveMml: false};</script>"""
NAMING = ("aria-labelledby", "aria-describedby", "headers")
ABOUT = """\
<p>This is the whole book on paper, made of the pages that one reads in a browser: every
equation, figure and exercise has the same number in both.</p>
<p>Three things are on the pages alone: figures that answer to the reader's hand, which stand
here as pictures; notebooks that run in the browser; and code that a page folds away, most of
it for plots.</p>
<p>The solutions of the exercises and the answers of the self-tests are
<a href="#solutions">at the end</a>; below each exercise stands the page.</p>"""


@dataclass(frozen=True)
class Part:
    """Chapters that stand together in the table of contents; the first part has no caption."""

    caption: str
    chapters: tuple[str, ...]


def parts(toc):
    """Return the parts of the book in order.

    Parameters
    ----------
    toc : Path
        The table of contents, ``_toc.yml``.
    """
    tree = yaml.safe_load(toc.read_text(encoding="utf-8"))
    groups = tree.get("parts") or [{"chapters": tree.get("chapters", [])}]
    found = [Part("", (Path(tree["root"]).name,))]
    for group in groups:
        names = tuple(Path(entry["file"]).name for entry in group["chapters"])
        found.append(Part(group.get("caption", ""), names))
    return found


class Book:
    """The document that is made of the pages of a built book.

    Parameters
    ----------
    html_dir : Path
        The built site; its pages are in the folder ``book``.
    toc : Path
        The table of contents.
    title : str
        Title of the book.

    Raises
    ------
    SiteError
        If a page of the table of contents is not built, or a link leads to nothing.
    """

    def __init__(self, html_dir, toc, title):
        self.title = title
        self.parts = parts(toc)
        self.names = [name for part in self.parts for name in part.chapters]
        self.head = {}
        self.code = []
        self.chapters = {name: self._read(html_dir, name) for name in self.names}
        self.solutions = {}
        for name, article in self.chapters.items():
            self._prepare(name, article)

    def _read(self, html_dir, name):
        path = html_dir / "book" / f"{name}.html"
        if not path.is_file():
            raise SiteError(f"{path} is not there, but in the table of contents")
        text = CODE.sub(self._set_aside, path.read_text(encoding="utf-8"))
        page = BeautifulSoup(text, "html.parser")
        self._keep_head(page)
        article = page.select_one("article.bd-article")
        article.name = "div"
        article["class"] = ["chapter"]
        return article

    def _set_aside(self, match):
        """Keep code out of the parser: most elements of a page are the colours in it."""
        self.code.append(match[0])
        return f"<pre>{ASIDE}{len(self.code) - 1}</pre>"

    def _put_back(self, text):
        return re.sub(rf"<pre>{ASIDE}(\d+)</pre>", lambda m: self.code[int(m[1])], text)

    def _keep_head(self, page):
        """Take the style sheets and MathJax from the pages, which look alike then."""
        for link in page.select('head link[rel~="stylesheet"]'):
            self.head.setdefault(link["href"], f'<link rel="stylesheet" href="{link["href"]}">')
        for script in page.select("script"):
            if "MathJax" in (script.string or "") or "mathjax" in script.get("src", ""):
                self.head.setdefault(script.get("src", "settings of MathJax"), str(script))

    # ------------------------------------------------------------ one chapter

    def _prepare(self, name, article):
        for element in article.select(DROPPED):
            element.decompose()
        for cell in article.select("div.cell"):
            if not cell.get_text(strip=True) and not cell.find(["img", "svg"]):
                cell.decompose()
        self._lay_open(article)
        self._rename(name, article)
        for level in range(5, 0, -1):  # a part is above a chapter
            for heading in article.find_all(f"h{level}"):
                heading.name = f"h{level + 1}"
                heading["class"] = [f"level-{level}"]
        self._take_solutions(name, article)

    def _lay_open(self, article):
        """Open what a page folds, and stack what it shows by turns."""
        for audio in article.find_all("audio"):
            said = f"[To be heard on the page: {audio.get('aria-label', 'a sound')}.]"
            audio.replace_with(_new(f'<p class="only-online">{html.escape(said)}</p>'))
        for label in article.select("label.sd-tab-label"):
            label.name = "p"
            label.attrs = {"class": "tab-title"}
        for content in article.select(".sd-tab-content"):
            content["class"] = ["tab"]
        for tabs in article.select(".sd-tab-set"):
            tabs["class"] = ["tabs"]
        for choice in article.select("details.selftest-choice"):
            summary = choice.summary.extract()
            summary.name = "p"
            summary["class"] = ["choice"]
            choice.replace_with(summary)
        for details in article.find_all("details"):
            details.name = "div"
            details.attrs = {"class": "unfolded"}
            if details.summary:
                details.summary.name = "p"
                details.find("p")["class"] = ["unfolded-title"]
            for inner in details.select(".sd-summary-content"):
                inner["class"] = ["unfolded-content"]
        for code in article.select("div.highlight:has(> pre)"):
            if self.code[int(code.pre.get_text().removeprefix(ASIDE))].count("\n") <= SHORT:
                code["class"] = [*code["class"], "short"]
        for box in article.select(".dropdown, .toggle"):
            box["class"] = [c for c in box["class"] if c not in ("dropdown", "toggle")]

    def _rename(self, name, article):
        """Put the chapter's name before its ids, and make its links lead there."""
        seen = set()
        for element in article.find_all(id=True):
            own = f"{name}--{element['id']}"
            if own in seen:  # sphinx-exercise gives all solutions of a page the same one
                del element["id"]
            else:
                seen.add(own)
                element["id"] = own
        article["id"] = name
        for attribute in NAMING:
            for element in article.find_all(attrs={attribute: True}):
                value = element[attribute]
                words = value.split() if isinstance(value, str) else value
                element[attribute] = " ".join(f"{name}--{word}" for word in words)
        for element in article.find_all(attrs={"aria-controls": True}):
            del element["aria-controls"]
        for link in article.find_all("a", href=True):
            target = self._target(name, link["href"])
            if target is None:
                link.unwrap()
            else:
                link["href"] = target
                link.attrs.pop("title", None)

    def _target(self, name, href):
        """Return where a link leads in the document; None for what is not in it."""
        parts_of = urlsplit(href)
        if parts_of.scheme or parts_of.netloc:
            return href
        page = Path(parts_of.path).stem if parts_of.path else name
        inside = not parts_of.path or re.fullmatch(r"(\.\./book/)?\w+\.html", parts_of.path)
        if not inside or page not in self.names:
            return None
        anchor = unquote(parts_of.fragment)
        return f"#{page}--{anchor}" if anchor else f"#{page}"

    def _take_solutions(self, name, article):
        """Move solutions and answers of a chapter to the end, with links both ways."""
        taken = []
        for solution in article.select("div.solution"):
            back = solution.select_one(".admonition-title a[href]")
            solution.extract()
            taken.append(solution)
            exercise = article.find(id=back["href"].removeprefix("#")) if back else None
            if exercise is not None:
                exercise.append(_turn_to("Solution", solution["id"]))
        for number, key in enumerate(article.select("div.selftest-key"), 1):
            test = key.find_parent(class_="selftest")
            key.extract()
            key["id"] = f"{name}--answers-{number}"
            taken.append(key)
            test.append(_turn_to("Answers", key["id"]))
        if taken:
            self.solutions[name] = taken

    # ------------------------------------------------------------ the document

    def outline(self):
        """Return the entries for the outline of the PDF: level, title, and id of the place."""
        entries = [(0, "Contents", "contents")]
        for part in self.parts:
            if part.caption:
                entries.append((0, part.caption, part_id(part)))
            above = 1 if part.caption else 0
            for name in part.chapters:
                title = self.chapters[name].select_one(".level-1")
                entries.append((above, spoken(title.get_text()), name))
                for heading in self.chapters[name].select(".level-2, .level-3"):
                    section = heading.find_parent("section")
                    if section is not None and section.get("id"):
                        level = above + int(heading["class"][0][-1]) - 1
                        entries.append((level, spoken(heading.get_text()), section["id"]))
        entries.append((0, "Solutions", SOLUTIONS))
        for name in self.solutions:
            title = self.chapters[name].select_one(".level-1")
            entries.append((1, spoken(title.get_text()), f"{SOLUTIONS}--{name}"))
        return entries

    def chapter_title(self, name):
        """Return the title of a chapter as HTML."""
        return self.chapters[name].select_one(".level-1").decode_contents()

    def _contents(self):
        """Return the table of contents, with a place for each page number."""
        lines = ['<nav class="book-contents"><h1 id="contents">Contents</h1>']
        for part in self.parts:
            if part.caption:
                lines.append(_entry("part", part_id(part), html.escape(part.caption)))
            for name in part.chapters:
                lines.append(_entry("chapter", name, self.chapter_title(name)))
                for heading in self.chapters[name].select(".level-2"):
                    section = heading.find_parent("section")
                    if section is not None and section.get("id"):
                        title = heading.decode_contents()
                        lines.append(_entry("section", section["id"], title))
        lines.append(_entry("part", SOLUTIONS, "Solutions"))
        lines.append("</nav>")
        return "\n".join(lines)

    def _solutions(self):
        lines = [f'<div class="part" id="{SOLUTIONS}"><h1>Solutions</h1></div>']
        for name, taken in self.solutions.items():
            title = self.chapter_title(name)
            lines.append(f'<div class="chapter solutions" id="{SOLUTIONS}--{name}">')
            lines.append(f'<h2 class="level-2"><a href="#{name}">{title}</a></h2>')
            lines += map(str, taken)
            lines.append("</div>")
        return "\n".join(lines)

    def _running_titles(self):
        """Return the style that puts a chapter's title at the head of its pages."""
        rules = []
        for name in (*self.names, SOLUTIONS):
            heading = None if name == SOLUTIONS else self.chapters[name].select_one(".level-1")
            title = " ".join(heading.get_text().split()) if heading else "Solutions"
            text = title.replace("\\", "\\\\").replace('"', '\\"')
            page = re.sub(r"\W", "-", name)
            rules.append(f'@page page-{page} {{ @top-right {{ content: "{text}"; }} }}')
            where = ".solutions" if name == SOLUTIONS else f'[id="{name}"]'
            rules.append(f"{where} {{ page: page-{page}; }}")
        return "\n".join(rules)

    def document(self, style, cover):
        """Return the whole document as HTML text.

        Parameters
        ----------
        style : str
            Style sheet for paper, laid over those of the pages.
        cover : str
            HTML of the first page.

        Raises
        ------
        SiteError
            If a link inside of the document leads to nothing.
        """
        body = [f'<section class="cover">{cover}</section>', self._contents()]
        for part in self.parts:
            if part.caption:
                caption = html.escape(part.caption)
                body.append(f'<div class="part" id="{part_id(part)}"><h1>{caption}</h1></div>')
            body += [str(self.chapters[name]) for name in part.chapters]
        body.append(self._solutions())
        # A print has a place for each target of a link, and the outline needs some that no
        # other link leads to.
        places = "".join(f'<a href="#{name}"></a>' for _, _, name in self.outline())
        body.append(f"<div hidden>{places}</div>")
        text = self._put_back("\n".join(body))
        check_links(text)
        return (
            '<!doctype html>\n<html lang="en" data-theme="light" data-mode="light"><head>'
            f'<meta charset="utf-8"><title>{html.escape(self.title)}</title>\n'
            + "\n".join(self.head.values())
            + PLAIN_FORMULAS
            + f"\n<style>\n{style}\n{self._running_titles()}\n</style></head>\n"
            f'<body><main class="bd-content bd-article">\n{text}\n</main></body></html>\n'
        )


def spoken(title):
    """Return a heading as plain text: an outline has no formulas."""
    title = re.sub(r"\\sqrt\{([^}]*)\}", r"√\1", title)
    title = re.sub(r"\\[lr]vert", "|", title)
    title = re.sub(r"\\mathcal\s*|\\[()]", "", title)
    return " ".join(re.sub(r"\\(?=\w)", "", title).split())


def part_id(part):
    """Return the id of a part's first page."""
    return "part--" + re.sub(r"\W+", "-", part.caption).lower()


class _Targets(HTMLParser):
    """The ids of a document, and the links inside of it."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links = Counter(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        """Take note of an element."""
        given = dict(attributes)
        if "id" in given:
            self.ids[given["id"]] += 1
        if tag == "a" and given.get("href", "").startswith("#"):
            self.links.add(given["href"].removeprefix("#"))


def check_links(text):
    """Raise unless each link inside of the document leads to one element of it."""
    found = _Targets(text)
    twice = sorted(name for name, count in found.ids.items() if count > 1)
    if twice:
        raise SiteError(f"the ids of the book must be unique, got {', '.join(twice[:5])} twice")
    lost = ", ".join(sorted(found.links - found.ids.keys())[:5])
    if lost:
        raise SiteError(f"the links of the book must lead to a place in it, got {lost}")


def _new(text):
    return BeautifulSoup(text, "html.parser").contents[0]


def _place(target):
    """Return the place for the number of the page on which an element is."""
    return f'<span class="page-of" data-page-of="{html.escape(target)}">0000</span>'


def _turn_to(what, target):
    link = f'<a href="#{html.escape(target)}">{what}: page {_place(target)}</a>'
    return _new(f'<p class="turn-to">{link}</p>')


def _entry(kind, target, title):
    title = re.sub(r"</?a\b[^>]*>", "", title)  # a heading with a link in it
    words = f'<span class="entry-title">{title}</span><span class="dots"></span>'
    link = f'<a href="#{html.escape(target)}">{words}{_place(target)}</a>'
    return f'<p class="entry-{kind}">{link}</p>'
