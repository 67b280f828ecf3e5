"""Self-tests: the directive ``selftest``, questions with choices from ``book/data/selftests``.

``{selftest} rnn`` shows the questions of ``rnn.toml``. Each choice unfolds to its own
explanation by ``<details>``, which the keyboard opens and a screen reader announces without
JavaScript; a script counts what was right at the first try. On paper the choices stay folded
and a list at the end has the answers.

A question has a ``text``, an optional ``from`` (the earlier page that it goes back to), an
optional ``check`` (a Python expression for the number or the numbers of the right choice,
which a test evaluates) and three or four choices with ``text``, ``why`` and, for those that
are right, ``right = true``.
"""

import tomllib
from dataclasses import dataclass

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from course_book import data

LETTERS = "ABCD"
RIGHT, WRONG = "Right. ", "Not this one. "


@dataclass(frozen=True)
class Choice:
    """One answer, and why it is right or what it mistakes."""

    text: str
    why: str
    right: bool = False


@dataclass(frozen=True)
class Question:
    """One question; ``earlier`` is the page it comes from if that is not its own."""

    text: str
    choices: tuple[Choice, ...]
    earlier: str | None = None
    check: str | None = None

    @property
    def answer(self):
        """Letters of the right choices, such as ``B``."""
        return "".join(
            letter
            for letter, choice in zip(LETTERS, self.choices, strict=False)
            if choice.right
        )


def path(page, root=data.ROOT):
    """Return the file with the questions of a page."""
    return root / "book" / "data" / "selftests" / f"{page}.toml"


def questions(page, root=data.ROOT):
    """Return the questions of a page in their order."""
    rows = tomllib.loads(path(page, root).read_text(encoding="utf-8"))["question"]
    return [
        Question(
            row["text"].strip(),
            tuple(Choice(**choice) for choice in row["choices"]),
            row.get("from"),
            row.get("check"),
        )
        for row in rows
    ]


def asked(question):
    """Return the text of a question, with the page that it comes from."""
    source = f"From {{doc}}`/book/{question.earlier}`: " if question.earlier else ""
    return source + question.text


def markdown(page, root=data.ROOT):
    """Return the questions as MyST without directives, the answers folded at the end."""
    lines, answers = [], []
    for number, question in enumerate(questions(page, root), 1):
        lines += [f"**{number}.** {asked(question)}", ""]
        for letter, choice in zip(LETTERS, question.choices, strict=False):
            lines.append(f"- {letter}. {choice.text}")
            answers.append(f"- **{number} {letter}**: {verdict(choice)}{choice.why}")
        lines.append("")
    folded = ["<details><summary>Answers</summary>", "", *answers, "", "</details>"]
    return "\n".join([*lines, *folded])


def verdict(choice):
    """Return the words before an explanation: a colour alone would not reach everyone."""
    return RIGHT if choice.right else WRONG


class SelfTest(nodes.General, nodes.Element):
    """Holds the list of questions and, for paper, the list of answers."""


class SelfTestChoice(nodes.General, nodes.Element):
    """A choice: a summary and an explanation."""


class SelfTestSummary(nodes.General, nodes.TextElement):
    """The text of a choice."""


class SelfTestWhy(nodes.General, nodes.Element):
    """The explanation of a choice, unfolded on a screen only."""


class SelfTestKey(nodes.General, nodes.Element):
    """The answers, on paper only."""


class SelfTestDirective(SphinxDirective):
    """The questions of one page."""

    required_arguments = 1

    def run(self):
        """Make the list; a change of the questions reads the page again."""
        page = self.arguments[0]
        if not path(page).is_file():
            raise self.error(f"selftest must name a file of book/data/selftests, got {page}")
        self.env.note_dependency(str(path(page)))
        asked_list, key = nodes.enumerated_list(), nodes.enumerated_list()
        for question in questions(page):
            item = nodes.list_item("", *self._parse(asked(question)))
            item += [
                self._choice(letter, choice)
                for letter, choice in zip(LETTERS, question.choices, strict=False)
            ]
            asked_list += item
            right = " ".join(choice.why for choice in question.choices if choice.right)
            answer = f"**{', '.join(question.answer)}.** {right}"
            key += nodes.list_item("", *self._parse(answer))
        answers = SelfTestKey("", nodes.paragraph("", "", nodes.strong("", "Answers")), key)
        return [SelfTest("", asked_list, answers)]

    def _choice(self, letter, choice):
        (paragraph,) = self._parse(f"{letter}. {choice.text}")
        why = self._parse(f"**{verdict(choice).strip()}** {choice.why}")
        summary = SelfTestSummary("", "", *paragraph.children)
        return SelfTestChoice("", summary, SelfTestWhy("", *why), right=choice.right)

    def _parse(self, text):
        holder = nodes.Element()
        lines = StringList(text.splitlines(), source=str(path(self.arguments[0])))
        self.state.nested_parse(lines, self.content_offset, holder)
        return holder.children


def _between(opening, closing):
    def visit(translator, node):
        translator.body.append(opening(node) if callable(opening) else opening)

    def depart(translator, _node):
        translator.body.append(closing)

    return visit, depart


def _as_paragraph():
    """Set a choice as a paragraph of its own, where nothing can unfold."""

    def visit(translator, node):
        translator.visit_paragraph(node)

    def depart(translator, node):
        translator.depart_paragraph(node)

    return visit, depart


def _skip(_translator, _node):
    raise nodes.SkipNode


def _nothing(_translator, _node):
    pass


def _open_choice(node):
    right = " data-right" if node["right"] else ""
    return f'<details class="selftest-choice"{right}>'


def _load(app, _pagename, _template, _context, doctree):
    """Load style and script on the pages that need them."""
    if doctree is not None and next(iter(doctree.findall(SelfTest)), None):
        app.add_css_file("selftest.css")
        app.add_js_file("selftest.js", loading_method="defer")


def setup(app):
    """Register the directive and its nodes."""
    paper = ("latex", "text", "man", "texinfo")
    for node, html, other in (
        (SelfTest, _between('<div class="selftest">', "</div>"), (_nothing, _nothing)),
        (SelfTestChoice, _between(_open_choice, "</details>\n"), (_nothing, _nothing)),
        (SelfTestSummary, _between("<summary>", "</summary>"), _as_paragraph()),
        (SelfTestWhy, _between("<div>", "</div>"), (_skip, None)),
        (SelfTestKey, _between('<div class="selftest-key">', "</div>"), (_nothing, _nothing)),
    ):
        app.add_node(node, html=html, **dict.fromkeys(paper, other))
    app.add_directive("selftest", SelfTestDirective)
    app.connect("html-page-context", _load)
