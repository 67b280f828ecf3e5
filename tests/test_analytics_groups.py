"""Groups with the same rare mistake: whom they name, whom not, and how common that is."""

import random

import pytest
import tiny_course
from analytics_class import diagnosis, register, save

from seqlib.grading.analytics.groups import wording
from seqlib.grading.analytics.numbers import analyse

SHAPE = "the answer has shape (5, 7), not (3, 7). Input: n=3 (3 of 3 inputs fail)"


@pytest.fixture
def course(tmp_path, monkeypatch):
    register(monkeypatch)
    return tiny_course.make_course(tmp_path)


def fill(course, count, *, start=0, **options):
    for number in range(start, start + count):
        save(course, f"s{number:03}", **options)


def found(course):
    return [(g["task"], g["students"]) for g in analyse(course)["groups"]]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        # Values, inputs, and sizes that are other ones for each student.
        (
            "entry [0, 2] (query 0) of Y is -0.52, which is wrong (15 of 15 entries). "
            "Input: n=5 tokens, d=3 (2 of 2 inputs fail)",
            "entry [1, 0] (query 1) of Y is 3.1e-05, which is wrong (21 of 21 entries). "
            "Input: n=7 tokens, d=3 (2 of 2 inputs fail)",
        ),
        ("dQ has shape (5, 7), not (3, 7)", "dQ has shape (11, 2), not (3, 2)"),
        ("the answer is 3876, which is wrong", "the answer is -4248, which is wrong"),
        (
            "the answer is wrong from position 3 on, where it reads 'ab'",
            "the answer is wrong from position 9 on, where it reads 'c 1'",
        ),
    ],
)
def test_what_comes_from_the_inputs_makes_no_difference(first, second):
    assert wording(first) == wording(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Y has shape (5, 7), not (3, 7)", "Y has shape (7, 5), not (3, 7)"),
        ("Y has shape (5, 7), not (3, 7)", "Y has shape (5, 1), not (3, 7)"),
        ("Y has shape (5, 7), not (3, 7)", "A has shape (5, 7), not (3, 7)"),
        ("Y is nan, not finite (3 of 3 entries)", "Y is inf, not finite (3 of 3 entries)"),
        (
            "Y is 1.5, which is wrong (3 of 3 entries)",
            "Y is 1.5, which is wrong (2 of 3 entries)",
        ),
        ("the code raised NameError: name 'x1'", "the code raised NameError: name 'x2'"),
    ],
)
def test_what_the_code_does_makes_a_difference(first, second):
    assert wording(first) != wording(second)


def test_a_group_and_its_base_rate(course):
    fill(course, 30)
    fill(course, 2, start=30, double=0.0, message=SHAPE)
    fill(course, 1, start=32, double=0.0, message=SHAPE, found=diagnosis("one_more"))
    fill(course, 1, start=33, double=0.0, message=SHAPE, version=2)
    fill(course, 6, start=34, double=0.0, message="the answer is None")
    fill(course, 4, start=40, double=0.0, message="not written yet: the line is there")
    (group,) = analyse(course)["groups"]
    # Six of 44 are more than one in twenty. One has a diagnosis besides, one another version
    # of the task, and what was not written is no answer.
    assert (group["task"], group["students"]) == ("tiny.double", ["s030", "s031"])
    assert (group["graded"], group["lost"], group["in_groups"]) == (44, 10, 2)
    # Of the 10 * 9 ordered pairs who lost points, 2 * 1 + 6 * 5 agree.
    assert group["agree"] == pytest.approx(32 / 90)
    assert group["together"] == 1
    assert group["criteria"] == ["values"]
    assert (group["message"], group["diagnosis"]) == (SHAPE, "")


def test_groups_in_which_two_stand_together_again_come_first(course):
    fill(course, 38)
    save(course, "s100", 0.0, message=SHAPE)
    save(course, "s101", 0.0, message=SHAPE)
    assert found(course) == [("tiny.double", ["s100", "s101"])]
    save(course, "s102", 0.0, 0.0, message="the answer is a list, not an array")
    save(course, "s103", 0.0, 0.0, message="the answer is a list, not an array")
    groups = analyse(course)["groups"]
    assert [(g["students"], g["together"]) for g in groups] == [
        (["s102", "s103"], 2),
        (["s102", "s103"], 2),
        (["s100", "s101"], 1),
    ]


def test_below_40_students_nothing_is_said(course):
    fill(course, 37)
    fill(course, 2, start=37, double=0.0, message=SHAPE)
    assert found(course) == []
    fill(course, 1, start=39)
    assert found(course) == [("tiny.double", ["s037", "s038"])]


def test_no_group_has_more_than_ten(course):
    fill(course, 230)
    fill(course, 10, start=230, double=0.0, message=SHAPE)
    assert [len(students) for _, students in found(course)] == [10]
    fill(course, 1, start=240, double=0.0, message=SHAPE)
    assert found(course) == []


def test_a_record_that_is_gone_is_no_pattern(course):
    fill(course, 40)
    fill(course, 2, start=40, double=0.0, message=SHAPE)
    for path in (course.records / "tiny" / "s040").glob("*/double*"):
        path.unlink()
    assert found(course) == []


def test_groups_change_no_score_and_help_nobody(course):
    fill(course, 40)
    fill(course, 2, start=40, double=0.0, message=SHAPE)
    with_group = analyse(course)
    assert with_group["groups"]
    fill(course, 1, start=41, double=0.0, message="the answer is None")
    without = analyse(course)
    assert not without["groups"]
    for part in ("assignments", "help", "mistakes", "weeks", "open"):
        assert with_group[part] == without[part]


def test_what_a_code_says_need_not_be_text(course):
    fill(course, 40)
    fill(course, 2, start=40, double=0.0, message="the code raised E: \udcff")
    assert found(course) == [("tiny.double", ["s040", "s041"])]


def test_chance_alone_makes_groups(course):
    # Why the base rate stands beside each: independent students, forty wordings.
    rng = random.Random(3)
    for number in range(100):
        save(course, f"s{number:03}", 0.0, message=f"the code raised E: x{rng.randrange(40)}")
    groups = analyse(course)["groups"]
    assert len(groups) > 5
    assert all(group["in_groups"] > 20 for group in groups)
