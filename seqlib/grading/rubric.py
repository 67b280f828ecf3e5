"""What a person needs to grade the questions in words: rubric and model answer."""

import json
import textwrap

from seqlib.exercises import get_assignment
from seqlib.judge.result import number

WIDTH = 96


def rubric_lines(course, name):
    """Return the rubric and the model answer of each question in words of an assignment.

    Parameters
    ----------
    course : seqlib.grading.course.Course
        Where the instructor's notebook lies.
    name : str
        The assignment.

    Returns
    -------
    list of str
        Lines to print.

    Raises
    ------
    ValueError
        If there is no such assignment or no instructor's notebook, or a question has no text
        or no model answer in it.
    """
    assignment = get_assignment(name)
    path = course.source(name)
    if not path.is_file():
        raise ValueError(f"assignment must have a source solutions/{name}/{name}.ipynb")
    notebook = json.loads(path.read_text(encoding="utf-8"))
    texts = {cell["id"]: "".join(cell["source"]).strip() for cell in notebook["cells"]}
    lines = []
    for question in assignment.written:
        about, answer = (texts.get(key) for key in (f"about_{question.id}", question.id))
        if not (about and answer):
            raise ValueError(
                f"{path.name} must have the cells about_{question.id} and {question.id}, "
                "question and model answer"
            )
        lines += [
            about,
            "",
            f"Rubric, {number(question.points)} points",
            *(line for part in question.rubric for line in _item(part)),
            "",
            f"Model answer, cell {question.id} of solutions/{name}/{name}.ipynb",
            "",
            answer,
            "",
        ]
    return lines[:-1] if lines else [f"{name} has no question in words."]


def _item(text):
    return textwrap.wrap(text, WIDTH, initial_indent="- ", subsequent_indent="  ")
