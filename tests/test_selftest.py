"""The self-tests of the chapters: their form, their numbers, and how they are shown."""

import math
import re
from collections import Counter

import numpy as np
import pytest
import torch
import yaml
from course_book import data, selftest
from sphinx.application import Sphinx

import seqlib.np as snp
import seqlib.pt as spt
from seqlib.experiments import ctc, forecasting_baselines
from seqlib.experiments.translation import wilson
from seqlib.text import bpe_train

PARTS = ("Recurrence", "Attention", "The four tasks")
# What a check may use.
NAMES = {
    "bpe_train": bpe_train,
    "ctc": ctc,
    "forecasting": forecasting_baselines,
    "math": math,
    "np": np,
    "snp": snp,
    "spt": spt,
    "torch": torch,
    "wilson": wilson,
}


def chapters():
    toc = yaml.safe_load((data.ROOT / "_toc.yml").read_text(encoding="utf-8"))
    return [
        row["file"].removeprefix("book/")
        for part in toc["parts"]
        if part["caption"] in PARTS
        for row in part["chapters"]
    ]


CHAPTERS = chapters()
WRITTEN = [page for page in CHAPTERS if selftest.path(page).is_file()]
ALL = {page: selftest.questions(page) for page in WRITTEN}


def numbers_of(question):
    """What the check computes, each as it must stand in the right choice."""
    value = eval(question.check, dict(NAMES))
    return [str(v) for v in value] if isinstance(value, list) else [str(value)]


def shows(text, number):
    # (?![.,]?\d): 0.1 is not found in 0.18, nor 2 in 2.5
    plain = re.sub(r"\\[,;!]", "", text)
    return re.search(rf"(?<![\d.,-]){re.escape(number)}(?![.,]?\d)", plain) is not None


def faults(page, questions, earlier):
    """Return what is wrong with the questions of a page; ``earlier`` holds the pages before."""
    found = []
    if len(questions) < 5:
        found.append(f"{page}: must have 5 questions or more, got {len(questions)}")
    back = [question.earlier for question in questions if question.earlier]
    found += [f"{page}: {name} is no earlier page" for name in back if name not in earlier]
    if earlier and len(back) * 5 < 2 * len(questions):
        found.append(f"{page}: two of five must come from earlier pages, got {len(back)}")
    places = Counter(question.answer for question in questions)
    if max(places.values()) * 2 > len(questions):
        found.append(f"{page}: more than half of the answers stand at one place")
    for i, question in enumerate(questions, 1):
        found += [f"{page} {i}: {fault}" for fault in faults_of(question)]
    return found


def faults_of(question):
    right = [choice for choice in question.choices if choice.right]
    found = []
    if not 3 <= len(question.choices) <= 4:
        found.append(f"must have 3 or 4 choices, got {len(question.choices)}")
    if len(right) != 1:
        return [*found, f"must have one right choice, got {len(right)}"]
    if len({choice.why for choice in question.choices}) < len(question.choices):
        found.append("two choices share an explanation")
    if len({choice.text for choice in question.choices}) < len(question.choices):
        found.append("two choices are the same")
    if question.check is None:
        # an index such as h_1 is a name, not a number to compute
        if re.search(r"\d", re.sub(r"_\{[^}]*\}|_\w+", "", right[0].text)):
            found.append("the right choice has a number but the question no check")
        return found
    numbers = numbers_of(question)
    for choice in question.choices:
        if all(shows(choice.text, number) for number in numbers) != choice.right:
            kind = "right" if choice.right else "wrong"
            found.append(f"computed {numbers}, {kind} choice is {choice.text}")
    return found


@pytest.mark.parametrize("page", WRITTEN)
def test_the_questions_of_a_page(page):
    assert faults(page, ALL[page], CHAPTERS[: CHAPTERS.index(page)]) == []


def test_every_chapter_has_questions():
    assert WRITTEN == CHAPTERS


@pytest.mark.parametrize("page", CHAPTERS)
def test_a_page_shows_its_own_questions_once(page):
    text = (data.ROOT / "book" / f"{page}.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```\{selftest\} (\S+)$", text, re.M)
    assert shown == [page]
    section = text.partition("\n## Self-test\n")[2].partition("\n## ")[0]
    assert f"```{{selftest}} {page}" in section


def test_the_answers_stand_at_all_places():
    places = Counter(question.answer for found in ALL.values() for question in found)
    total = sum(places.values())
    for letter in "ABC":
        assert 0.2 <= places[letter] / total <= 0.45, places
    assert places["D"] > 0


def question(*rights, **changes):
    choices = tuple(
        selftest.Choice(f"{number} units", f"because {number}", right)
        for number, right in zip((5, 6, 7), rights, strict=True)
    )
    return selftest.Question(**{"text": "?", "choices": choices, "check": "2 + 3", **changes})


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (question(True, True, False), "must have one right choice, got 2"),
        (question(False, True, False), "computed ['5'], wrong choice is 5 units"),
        (question(True, False, False, check="5.5"), "computed ['5.5'], right choice is 5"),
        (question(True, False, False, check=None), "has a number but the question no check"),
        (question(True, False, False, earlier="gru"), "gru is no earlier page"),
    ],
)
def test_a_fault_is_found(broken, message):
    assert faults_of(question(True, False, False)) == []
    good = [question(False, True, False, check="6"), question(False, False, True, check="7")]
    found = faults("lstm", [broken, *good, *good], ["rnn"])
    assert any(message in fault for fault in found), found


def test_too_few_questions_from_earlier_pages_are_found():
    new = [question(True, False, False)] * 5
    found = faults("lstm", new, ["rnn"])
    assert "lstm: two of five must come from earlier pages, got 0" in found
    assert "lstm: more than half of the answers stand at one place" in found


def build(builder, folder):
    (folder / "book").mkdir(parents=True)
    page = WRITTEN[-1]
    text = f"# Page\n\n```{{selftest}} {page}\n```\n"
    (folder / "book" / "page.md").write_text(text, encoding="utf-8")
    (folder / "index.md").write_text("# Book\n\n```{toctree}\n:glob:\nbook/*\n```\n")
    for name in {q.earlier for q in ALL[page]} - {None}:
        (folder / "book" / f"{name}.md").write_text(f"# Chapter {name}\n")
    app = Sphinx(
        folder,
        None,
        folder / "out",
        folder / "trees",
        builder,
        confoverrides={
            "extensions": ["myst_parser", "course_book.selftest"],
            "myst_enable_extensions": ["dollarmath"],
        },
        status=None,
        warning=None,
    )
    app.build()
    return page


def test_each_choice_unfolds_without_a_script(tmp_path):
    page = build("html", tmp_path)
    html = (tmp_path / "out" / "book" / "page.html").read_text(encoding="utf-8")
    shown = re.findall(
        r'<details class="selftest-choice"( data-right)?><summary>(\w)\. .*?</summary>'
        r"<div><p><strong>(.*?)</strong>",
        html,
        re.S,
    )
    expected = [
        (" data-right" if choice.right else "", letter, selftest.verdict(choice).strip())
        for q in ALL[page]
        for letter, choice in zip("ABCD", q.choices, strict=False)
    ]
    assert shown == expected
    assert html.count("selftest.css") == html.count("selftest.js") == 1


@pytest.mark.parametrize("builder", ["text", "latex"])
def test_on_paper_the_answers_stand_at_the_end(builder, tmp_path):
    page = build(builder, tmp_path)
    name = "book/page.txt" if builder == "text" else "*.tex"
    text = next((tmp_path / "out").glob(name)).read_text(encoding="utf-8")
    choices, _, answers = text.partition("Answers")
    assert choices.count("A. ") == len(ALL[page])
    assert selftest.WRONG.strip() not in text
    assert selftest.RIGHT.strip() not in text
    assert re.findall(r"\b([A-D])\.(?:\W|$)", answers)[: len(ALL[page])] == [
        q.answer for q in ALL[page]
    ]


def test_the_notebook_has_the_questions_too():
    text = selftest.markdown(WRITTEN[0])
    choices = sum(len(q.choices) for q in ALL[WRITTEN[0]])
    assert text.count(selftest.RIGHT) == len(ALL[WRITTEN[0]])
    assert text.count(selftest.RIGHT) + text.count(selftest.WRONG) == choices
