"""The analytics of a class against numbers that were worked out by hand."""

import json
import os

import pytest
import tiny_course
from analytics_class import diagnosis, fail, register, save, write_time

from seqlib.grading.analytics.numbers import analyse, discrimination, distribution
from seqlib.grading.analytics.read import read_class


@pytest.fixture
def course(tmp_path, monkeypatch):
    register(monkeypatch)
    return tiny_course.make_course(tmp_path)


def of(data, name="tiny"):
    """Return what is said of one assignment."""
    return next(a for a in data["assignments"] if a["name"] == name)


# Scores


def test_the_distribution_of_scores():
    found = distribution([0.0, 0.1, 0.25, 0.5, 1.0])
    assert found["bins"] == [1, 1, 1, 0, 0, 1, 0, 0, 0, 1]
    assert found["mean"] == pytest.approx(0.37)
    assert found["quartiles"] == [0.0, 0.1, 0.25, 0.5, 1.0]
    # Between two values in proportion: 0.2 + (0.6 - 0.2) / 4, and so on.
    assert distribution([0.6, 0.2])["quartiles"] == pytest.approx([0.2, 0.3, 0.4, 0.5, 0.6])


def test_a_sum_that_rounds_down_stays_in_its_part():
    assert 1 - 0.9 < 0.1
    assert distribution([1 - 0.9])["bins"] == [0, 1, *[0] * 8]


def test_one_student_and_none():
    one = distribution([0.3])
    assert (one["count"], one["mean"], one["quartiles"]) == (1, 0.3, [0.3] * 5)
    assert distribution([]) == {"count": 0, "mean": None, "quartiles": None, "bins": [0] * 10}


# Tasks


def class_of_20(course):
    """Save a class in which the two tasks go together in part.

    double and add: both right 8 times, only double 2, only add 5, neither 5.
    """
    kinds = [(40.0, 40.0)] * 8 + [(40.0, 0.0)] * 2 + [(0.0, 40.0)] * 5 + [(0.0, 0.0)] * 5
    for number, (double, add) in enumerate(kinds):
        save(course, f"s{number:03}", double, add)


def test_difficulty_and_discrimination_of_a_class(course):
    class_of_20(course)
    double, add = of(analyse(course))["tasks"]
    assert (double["count"], double["difficulty"]) == (20, 0.5)
    assert add["difficulty"] == pytest.approx(13 / 20)
    # With two tasks the rest is the other task, so this is the phi coefficient of the table
    # (8, 2; 5, 5): (8 * 5 - 2 * 5) / sqrt(10 * 10 * 13 * 7) = 30 / sqrt(9100). The sum of
    # both tasks in place of the rest would give 0.81.
    for task in (double, add):
        assert task["discrimination"] == pytest.approx(30 / 9100**0.5)
        assert task["correlated"] == 20
        # artanh 0.3144855 = 0.3255435, 1.96 / sqrt(17) = 0.4753610.
        assert task["low"] == pytest.approx(-0.148734, abs=1e-5)
        assert task["high"] == pytest.approx(0.664527, abs=1e-5)
        assert task["remark"] == ""


def test_an_unequal_weight_does_not_count_twice(course):
    # The points of the rest, not their shares, are summed; 20 students with 0, 20 or 40.
    points = [(0.0, 20.0), (20.0, 0.0), (40.0, 40.0), (20.0, 20.0)]
    for number in range(20):
        save(course, f"s{number:03}", *points[number % 4])
    (double, _) = of(analyse(course))["tasks"]
    # Deviations (-20, 0, 20, 0) and (0, -20, 20, 0): 400 / sqrt(800 * 800).
    assert double["discrimination"] == pytest.approx(0.5)
    assert double["difficulty"] == 0.5


@pytest.mark.parametrize(
    ("points", "rest", "remark"),
    [
        ([0, 40] * 9 + [0], [*range(19)], "too few"),
        ([40] * 20, [*range(20)], "constant"),
        ([0, 40] * 10, [40] * 20, "others constant"),
        ([], [], "too few"),
    ],
)
def test_what_says_nothing_has_no_number(points, rest, remark):
    found = discrimination(points, rest)
    assert (found["discrimination"], found["low"], found["high"]) == (None, None, None)
    assert found["remark"] == remark


@pytest.mark.parametrize("sign", [1, -1])
def test_a_perfect_correlation_has_no_width(sign):
    found = discrimination([*range(20)], [sign * n for n in range(20)])
    assert [found[k] for k in ("low", "discrimination", "high")] == pytest.approx([sign] * 3)


def test_four_students_are_too_few_for_a_difficulty(course):
    for number in range(4):
        save(course, f"s{number}", 40.0, 0.0)
    assert [t["difficulty"] for t in of(analyse(course))["tasks"]] == [None, None]
    save(course, "s4", 0.0, 0.0)
    assert [t["difficulty"] for t in of(analyse(course))["tasks"]] == [0.8, 0.0]


def test_a_task_that_a_record_lacks_is_counted_for_the_others(course):
    class_of_20(course)
    save(course, "s100", 40.0, 40.0)
    path = course.records / "tiny" / "s100" / "submission.json"
    record = json.loads(path.read_text())
    del record["tasks"]["tiny.add"]
    path.write_text(json.dumps(record))
    double, add = of(analyse(course))["tasks"]
    assert (double["count"], double["correlated"]) == (21, 20)
    assert (add["count"], add["correlated"]) == (20, 20)
    assert double["difficulty"] == pytest.approx(11 / 21)


# What was not judged as a whole


def test_only_what_was_judged_as_a_whole_has_a_score(course):
    wrong = diagnosis("one_more")
    save(course, "s1", 40.0, 40.0)
    save(course, "s2", 0.0, 40.0, state="graded_with_repairs", found=wrong)
    save(course, "s3", 0.0, 0.0, state="partly_graded", found=wrong)
    save(course, "s4", 0.0, 0.0, state="unreadable", found=wrong)
    save(course, "s5", 0.0, 0.0, found=wrong)
    fail(course, "s5")  # an earlier submission was graded
    fail(course, "s6")
    (course.submission("s7", "tiny")).mkdir(parents=True)
    data = analyse(course)
    tiny = of(data)
    assert tiny["distribution"]["count"] == 2
    assert tiny["distribution"]["mean"] == 0.75
    assert [task["count"] for task in tiny["tasks"]] == [2, 2]
    assert tiny["states"] == {
        "graded": 1,
        "graded_with_repairs": 1,
        "infrastructure_error": 2,
        "partly_graded": 1,
        "unreadable": 1,
    }
    assert (tiny["waiting"], tiny["missing"], data["students"]) == (1, 0, 7)
    (mistake,) = data["mistakes"]
    assert (mistake["count"], mistake["readable"]) == (2, 3)
    assert {entry["student"]: entry["says"][:18] for entry in data["open"]} == {
        "s3": "part of the work c",
        "s4": "the file could not",
        "s5": "grading failed, wh",
        "s6": "grading failed, wh",
        "s7": "handed in, not gra",
    }
    assert data["help"] == []


def test_records_of_two_versions_of_a_task_are_noted(course):
    save(course, "s1")
    save(course, "s2", version=2)
    (double, _) = [note["says"] for note in analyse(course)["notes"]]
    assert double == (
        "tiny.double has records of several versions of the task: 1 of version 1, 1 of "
        "version 2."
    )


# Mistakes by assignment and by week


def test_mistakes_by_assignment(course):
    save(course, "s1", 0.0, found=diagnosis("one_more"))
    save(course, "s2", 0.0, found=diagnosis("zero", "one_more"))
    save(course, "s3", 0.0, found=diagnosis("one_more", kind="partial"))
    save(course, "s4", 0.0, found=diagnosis("zero", "one_more", kind="either"))
    save(course, "s5", 0.0, found=diagnosis("values", kind="property"))
    save(course, "s1", 0.0, name="second", found=diagnosis("zero"))
    found = [(m["task"], m["name"], m["count"]) for m in analyse(course)["mistakes"]]
    # Mistakes that cannot be told apart count for none, and a property is no mistake.
    assert found == [
        ("tiny.double", "one_more", 3),
        ("tiny.double", "zero", 1),
        ("second.double", "zero", 1),
    ]
    (first, *_) = analyse(course)["mistakes"]
    assert (first["says"], first["page"]) == ("one_more was done.", "tiny#double")
    assert first["readable"] == 5


def test_mistakes_by_week(course):
    wrong = diagnosis("one_more")
    # A Sunday, the Monday after it, and the Monday that is a Sunday in UTC.
    save(course, "s1", 0.0, found=wrong, time="2026-03-01 23:59:59 UTC")
    save(course, "s2", 0.0, found=wrong, time="2026-03-02 00:00:00 UTC")
    save(course, "s3", 0.0, found=wrong, time="2026-03-02 00:30:00+02:00")
    save(course, "s4", time="2026-03-05 12:00:00 UTC")
    # Friday, 1 January 2027, is in the last week of 2026.
    save(course, "s5", 0.0, found=wrong, time="2027-01-01 12:00:00 UTC")
    save(course, "s6", 0.0, found=wrong)
    data = analyse(course)
    assert [tuple(week.values()) for week in data["weeks"]] == [
        ("2026-W09", 2, 2, 2),
        ("2026-W10", 2, 1, 1),
        ("2026-W53", 1, 1, 1),
        (None, 1, 1, 1),
    ]
    assert data["mistakes"][0]["weeks"] == {"2026-W09": 2, "2026-W10": 1, "2026-W53": 1}
    assert data["mistakes"][0]["count"] == 5


def test_the_time_is_that_of_the_submission_that_was_graded(course):
    save(course, "s1", time="2026-03-02 12:00:00 UTC")
    write_time(course, "s1", "2026-05-02 12:00:00 UTC", where="submitted")
    save(course, "s2", time="2026-03-10 12:00:00 UTC", where="submitted")
    assert [week["week"] for week in analyse(course)["weeks"]] == ["2026-W10", "2026-W11"]


@pytest.mark.parametrize("text", ["", "soon", "9999-12-31 23:59:59-12:00", "x" * 2000, "\0"])
def test_a_time_that_is_none_is_not_known(course, text):
    save(course, "s1", time=text)
    assert [week["week"] for week in analyse(course)["weeks"]] == [None]


def test_a_link_in_place_of_a_time_is_not_followed(course, tmp_path):
    save(course, "s1")
    (tmp_path / "elsewhere").write_text("2026-03-02 12:00:00 UTC")
    folder = course.submission("s1", "tiny")
    folder.mkdir(parents=True)
    (folder / "timestamp.txt").symlink_to(tmp_path / "elsewhere")
    assert [week["week"] for week in analyse(course)["weeks"]] == [None]


# Who needs help


def helped(course, *arguments):
    return {
        entry["student"]: [(r["rule"], r["says"]) for r in entry["reasons"]]
        for entry in analyse(course, *arguments)["help"]
    }


def test_who_needs_help_and_why(course):
    wrong, other = diagnosis("one_more"), diagnosis("zero", "third")  # one reason, not two
    save(course, "s1", 40.0, 0.0)  # half, which is not below half
    save(course, "s1", 0.0, 39.0, name="second")
    save(course, "s2", 0.0, 39.0)
    save(course, "s2", 0.0, 20.0, name="second")
    save(course, "s3", 0.0, found=wrong)  # and not again
    save(course, "s3", name="second")
    save(course, "s4", 0.0, found=wrong)
    save(course, "s4", 0.0, name="second", found=other)
    save(course, "s5", 0.0, found=wrong)
    save(course, "s5", 0.0, name="second", found=diagnosis("none", page="tiny#add"))
    save(course, "s6", 0.0, 0.0)
    save(course, "s7", name="second")
    assert helped(course) == {
        "s6": [("missing", "No submission of second."), ("low", "Points: only 0 % in tiny.")],
        "s2": [("low", "Points: only 48 % in tiny and 25 % in second.")],
        "s4": [
            (
                "came back",
                "Made in tiny.double before, and again in second.double: zero was done.",
            )
        ],
        "s7": [("missing", "No submission of tiny.")],
    }
    (reason,) = analyse(course)["help"][2]["reasons"]
    assert reason["page"] == "tiny#double"


def test_what_is_not_due_is_not_missing(course):
    for number in range(5):
        save(course, f"s{number}")
    save(course, "s0", 0.0, 0.0, name="second")
    save(course, "s1", name="second")
    assert helped(course) == {}
    save(course, "s2", name="second")  # now it is half of the class
    assert helped(course) == {
        "s3": [("missing", "No submission of second.")],
        "s4": [("missing", "No submission of second.")],
    }


def test_what_is_not_judged_is_neither_missing_nor_low(course):
    save(course, "s1", 0.0, 0.0, state="unreadable")
    fail(course, "s2")
    save(course, "s3", 0.0, 0.0, state="partly_graded")
    course.submission("s4", "tiny").mkdir(parents=True)
    save(course, "s5")
    assert helped(course) == {}


def test_the_class_list_shows_who_handed_in_nothing(course):
    save(course, "s1")
    save(course, "s2")
    assert helped(course) == {}
    assert helped(course, (), ["s1", "s2", "s3"]) == {
        "s3": [("missing", "No submission of tiny.")]
    }


# Which assignments, and whose


def test_assignments_come_in_the_order_of_the_course(course):
    save(course, "s1", name="second")
    save(course, "s1")
    assert [a["name"] for a in analyse(course)["assignments"]] == ["tiny", "second"]
    assert [a["name"] for a in analyse(course, ["second"])["assignments"]] == ["second"]
    twice = analyse(course, ["second", "tiny", "second"])
    assert [a["name"] for a in twice["assignments"]] == ["tiny", "second"]


def test_without_a_graded_submission_there_are_no_numbers(course):
    with pytest.raises(ValueError, match="course must have graded submissions, got none"):
        analyse(course)
    save(course, "s1")
    with pytest.raises(ValueError, match="graded submissions, got second; run `seqlib grade s"):
        analyse(course, ["tiny", "second"])
    with pytest.raises(ValueError, match="assignment must be one of tiny, second"):
        analyse(course, ["third"])


def test_a_class_of_one(course):
    save(course, "s1", 0.0, found=diagnosis("one_more"))
    data = analyse(course)
    assert (data["students"], of(data)["distribution"]["count"]) == (1, 1)
    assert [task["remark"] for task in of(data)["tasks"]] == ["too few", "too few"]
    assert data["groups"] == []


def test_files_that_are_no_records_are_passed_over(course):
    save(course, "s1")
    (course.records / "tiny" / ".DS_Store").write_bytes(b"\0")
    (course.records / "tiny" / "notes.txt").write_text("mine")
    (course.records / "tiny" / "s2").mkdir()
    (course.records / "tiny" / "s3").mkdir()
    (course.records / "tiny" / "s3" / "submission.json").write_text("{broken")
    assert analyse(course)["students"] == 1


@pytest.mark.skipif(os.name != "posix", reason="a name that is no text needs a POSIX system")
def test_a_name_that_is_no_text(course):
    save(course, "s1")
    (course.records / "tiny" / "s1").rename(course.records / "tiny" / os.fsdecode(b"s\xff"))
    assert list(read_class(course)[0].works) == ["s\\xff"]


# Students whose id has changed


def index(course, name, **keys):
    folder = course.grading / "collected" / name
    folder.mkdir(parents=True, exist_ok=True)
    students = {s: {"current": {"key": key}, "history": []} for s, key in keys.items()}
    (folder / "index.json").write_text(json.dumps({"format": 1, "students": students}))
    return folder


def retire(course, old, new, name="tiny"):
    folder = index(course, name, **{new: "blackboard:u1"}) / old
    folder.mkdir()
    (folder / "retired.json").write_text(json.dumps({"now": new}))


def test_a_record_under_a_retired_id_is_the_students(course):
    retire(course, "u1", "ada")
    save(course, "u1", 40.0, 0.0)
    save(course, "ada", name="second")
    data = analyse(course)
    assert (data["students"], data["help"]) == (1, [])
    assert [note["says"] for note in data["notes"]] == ["u1 is ada by now."]


def test_a_newer_record_under_the_new_id_counts_alone(course):
    retire(course, "u1", "ada")
    save(course, "u1", 0.0, 0.0)
    save(course, "ada", 40.0, 40.0)
    data = analyse(course)
    assert of(data)["distribution"]["mean"] == 1.0
    assert [note["says"] for note in data["notes"]] == [
        "The record of u1 is left out: ada has a newer one."
    ]


def test_ids_that_retired_each_other_end(course):
    retire(course, "u1", "u2")
    folder = index(course, "tiny") / "u2"
    folder.mkdir()
    (folder / "retired.json").write_text(json.dumps({"now": "u1"}))
    save(course, "u1")
    assert analyse(course)["students"] == 1


def test_who_is_known_to_the_platform_by_one_number_is_one_student(course):
    index(course, "tiny", u7="canvas:7")
    index(course, "second", ada="canvas:7")
    save(course, "u7")
    save(course, "ada", name="second")
    data = analyse(course)
    assert (data["students"], data["help"]) == (1, [])


def test_a_number_of_one_assignment_alone_joins_nobody(course):
    # Moodle numbers the participants of each assignment anew.
    index(course, "tiny", ada="moodle:7")
    index(course, "second", ben="moodle:7")
    save(course, "ada")
    save(course, "ben", name="second")
    assert analyse(course)["students"] == 2


def test_a_damaged_list_of_what_was_collected_is_noted(course):
    (index(course, "tiny") / "index.json").write_text("[]")
    save(course, "s1")
    (note,) = analyse(course)["notes"]
    assert "damaged" in note["says"]
