"""The changes of grading: every version of an exercise and of the judge has its entry."""

import dataclasses

import pytest
from course_book import changelog
from course_book.changelog import JUDGE, Change, change_gaps

from seqlib.exercises import ASSIGNMENTS, PRACTICE, get_assignment
from seqlib.judge.judge import JUDGE_VERSION

TASKS = {
    task.id: task.version
    for name in (*ASSIGNMENTS, *PRACTICE)
    for task in get_assignment(name).tasks
}
FIRST = Change(JUDGE, 1, "The first.", "none")
SECOND = Change("rnn.step", 2, "A case more.", "lower for loops")
STEP = {"rnn.step": 1, "rnn.loss": 1}


def test_every_version_of_the_course_has_an_entry():
    gaps = change_gaps(changelog.changes(), TASKS, JUDGE_VERSION)
    assert gaps == [], "write what changed into book/data/changes.toml"


def test_the_check_sees_the_courses_own_versions():
    """A version that is raised without an entry is found, for each task and the judge."""
    found = changelog.changes()
    raised = {task: version + 1 for task, version in TASKS.items()}
    gaps = change_gaps(found, raised, JUDGE_VERSION + 1)
    assert len(gaps) == len(TASKS) + 1
    assert f"{JUDGE}: version {JUDGE_VERSION + 1} has no entry" in gaps


@pytest.mark.parametrize(
    ("changes", "tasks", "judge", "gaps"),
    [
        ([FIRST], STEP, 1, []),
        ([], STEP, 1, ["judge: version 1 has no entry"]),
        ([FIRST], STEP, 2, ["judge: version 2 has no entry"]),
        ([FIRST, SECOND], STEP | {"rnn.step": 2}, 1, []),
        ([FIRST], STEP | {"rnn.step": 2}, 1, ["rnn.step: version 2 has no entry"]),
        ([FIRST, SECOND], STEP | {"rnn.step": 3}, 1, ["rnn.step: version 3 has no entry"]),
        (
            [FIRST, SECOND],
            STEP,
            1,
            ["rnn.step: version 2 has an entry, but the last is 1"],
        ),
        ([FIRST, SECOND], {}, 1, ["rnn.step: there is no such task"]),
        ([FIRST, dataclasses.replace(SECOND, retired=True)], {}, 1, []),
        (
            [FIRST, dataclasses.replace(SECOND, retired=True)],
            STEP | {"rnn.step": 2},
            1,
            ["rnn.step: listed as retired, but it is a task"],
        ),
        ([FIRST, FIRST], STEP, 1, ["judge: version 1 has more than one entry"]),
    ],
)
def test_each_gap_is_found(changes, tasks, judge, gaps):
    assert change_gaps(changes, tasks, judge) == gaps


def test_entries_are_sentences_that_a_page_can_hold():
    for change in changelog.changes():
        assert change.says[0].isupper()
        assert change.says.endswith(".")
        assert change.scores
        assert not change.scores.endswith(".")
        assert "\n" not in change.says + change.scores


def test_the_page_lists_the_judge_first_and_the_newest_version_of_a_task():
    third = dataclasses.replace(SECOND, version=3, says="Fewer.", retired=True)
    assert changelog.as_markdown([SECOND, FIRST, third]).splitlines() == [
        "- The judge, version 1: The first.",
        "  Scores that may differ: none.",
        "- `rnn.step`, version 3, the task is retired: Fewer.",
        "  Scores that may differ: lower for loops.",
        "- `rnn.step`, version 2: A case more.",
        "  Scores that may differ: lower for loops.",
    ]


def test_the_file_is_read_in_full(tmp_path):
    (tmp_path / "book" / "data").mkdir(parents=True)
    (tmp_path / "book" / "data" / "changes.toml").write_text(
        '[[judge]]\nversion = 1\nsays = "The first."\nscores = "none"\n'
        '[[task]]\ntask = "rnn.step"\nversion = 2\nsays = "A case more."\n'
        'scores = "lower for loops"\n'
    )
    assert changelog.changes(tmp_path) == [FIRST, SECOND]
