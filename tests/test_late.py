"""The policy for late submissions: its numbers, its calendar, its file, and nbgrader's use."""

import shutil
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
import tiny_course
from hypothesis import given
from hypothesis import strategies as st
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import LateSubmissionPlugin
from tiny_course import solved, submit
from traitlets.config import Config

from seqlib.grading import batch
from seqlib.grading.course import Course
from seqlib.grading.export.marks import collect_marks
from seqlib.grading.export.run import export
from seqlib.grading.gradebook.writer import Writer, open_gradebook, register
from seqlib.grading.grader import Grader
from seqlib.grading.late.extensions import read_extensions, to_utc
from seqlib.grading.late.penalties import penalties, update_penalties
from seqlib.grading.late.policy import LatePolicy, days_begun, penalty
from seqlib.grading.late.report import late_sentence
from seqlib.grading.nbgrader_plugins import close_graders
from seqlib.grading.release import load_config, release
from seqlib.grading.report import write_report

pytestmark = [
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
BERLIN = ZoneInfo("Europe/Berlin")
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
DUE = datetime(2026, 3, 2, 12)


def utc(text, zone=BERLIN):
    """Return a local time in UTC without a zone, by the standard library alone."""
    local = datetime.fromisoformat(text).replace(tzinfo=zone)
    return local.astimezone(UTC).replace(tzinfo=None)


# Numbers


@pytest.mark.parametrize(
    ("late", "points"),
    [
        (timedelta(0), None),
        (timedelta(minutes=15), None),
        # Beyond the grace, days count from the due date.
        (timedelta(minutes=15, seconds=1), 8.0),
        (DAY, 8.0),
        (DAY + timedelta(seconds=1), 16.0),
        (3 * DAY, 24.0),
        (4 * DAY, 28.0),  # at most 35 %
        (400 * DAY, 28.0),
    ],
)
def test_each_day_that_has_begun_costs_a_tenth_up_to_the_most(late, points):
    found = penalty(
        DUE,
        DUE + late,
        ZoneInfo("UTC"),
        grace=timedelta(minutes=15),
        percent_per_day=10.0,
        max_percent=35.0,
        base=80.0,
    )
    assert found == (None if points is None else pytest.approx(points))


@pytest.mark.parametrize(
    ("due", "submitted", "days"),
    [
        # The clock goes forward on 29 March: the day after 28 March, 18:00 has 23 hours.
        ("2026-03-28T18:00", "2026-03-29T18:00", 1),
        ("2026-03-28T18:00", "2026-03-29T18:01", 2),
        # It goes back on 25 October: the day has 25 hours.
        ("2026-10-24T18:00", "2026-10-25T18:00", 1),
        ("2026-10-24T18:00", "2026-10-25T18:01", 2),
        ("2026-10-24T18:00", "2026-10-24T17:59", 0),
        # Due at 02:30, which 29 March has not: the day ends at 03:30.
        ("2026-03-28T02:30", "2026-03-29T03:30", 1),
        ("2026-03-28T02:30", "2026-03-29T03:31", 2),
    ],
)
def test_days_are_those_of_the_calendar(due, submitted, days):
    assert days_begun(utc(due), utc(submitted), BERLIN) == days


def test_hours_alone_would_take_a_day_too_much_in_autumn():
    due, submitted = utc("2026-10-24T18:00"), utc("2026-10-25T18:00")
    assert submitted - due == 25 * HOUR
    assert days_begun(due, submitted, BERLIN) == 1
    assert days_begun(due, submitted, ZoneInfo("UTC")) == 2


@given(
    st.datetimes(datetime(2025, 1, 1), datetime(2027, 1, 1)),
    st.timedeltas(timedelta(seconds=1), timedelta(days=40)),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
)
def test_the_last_moment_of_a_day_costs_no_more_than_that_day(due, late, name):
    zone = ZoneInfo(name)
    days = days_begun(due, due + late, zone)
    local = due.replace(tzinfo=UTC).astimezone(zone).replace(tzinfo=None)
    assert days >= 1
    assert due + late <= to_utc(local + days * DAY, zone)
    if days > 1:
        assert due + late > to_utc(local + (days - 1) * DAY, zone)
    # A calendar day has 23 to 25 hours, so the number is that of 24 hours or next to it.
    assert abs(days - -(-late // DAY)) <= 1


@pytest.mark.parametrize(
    ("late", "cost", "sentence"),
    [
        (2 * DAY + timedelta(seconds=1), 8.0, "Late by 2 d 1 min: 8 points off."),
        (timedelta(minutes=3), 0.0, "Late by 3 min: no points off."),
        (26 * HOUR, 1 / 3, "Late by 1 d 2 h: 0.33333 points off."),
        (timedelta(0), 0.0, ""),
        (-DAY, 0.0, ""),
    ],
)
def test_what_is_said(late, cost, sentence):
    assert late_sentence(DUE, DUE + late, cost) == sentence


def test_without_a_time_or_a_due_date_nobody_is_late():
    assert late_sentence(None, DUE, 0.0) == late_sentence(DUE, None, 0.0) == ""


# The file of extensions


CSV = """student,assignment,until,days,hours

ada,tiny,2026-03-05T23:59,,
ben,,,2,
grace,tiny,,,1.5
alan,tiny,2026-03-05,,
zoë,tiny,2026-03-05T23:59+00:00,,
"""
TOML = """
[[extension]]
student = "ada"
assignment = "tiny"
until = 2026-03-05T23:59:00
[[extension]]
student = "ben"
days = 2
[[extension]]
student = "grace"
assignment = "tiny"
hours = 1.5
[[extension]]
student = "alan"
assignment = "tiny"
until = 2026-03-05
[[extension]]
student = "zoë"
assignment = "tiny"
until = 2026-03-05T23:59:00Z
"""


@pytest.mark.parametrize(("name", "text"), [("e.csv", CSV), ("e.toml", TOML)])
def test_both_kinds_of_file_say_the_same(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    found = read_extensions(tmp_path / name, BERLIN)
    due = {key: extension.due(DUE, BERLIN) for key, extension in found.items()}
    assert due == {
        ("ada", "tiny"): datetime(2026, 3, 5, 22, 59),  # an hour behind Berlin in winter
        ("ben", ""): DUE + 2 * DAY,
        ("grace", "tiny"): DUE + timedelta(hours=1, minutes=30),
        ("alan", "tiny"): datetime(2026, 3, 5, 23),  # the end of the day
        ("zoë", "tiny"): datetime(2026, 3, 5, 23, 59),
    }


@pytest.mark.parametrize("day", ["2026-03-05", "20260305", "2026-W10-4"])
def test_a_date_is_its_end_in_every_form(tmp_path, day):
    (tmp_path / "e.csv").write_text(f"student,until\nada,{day}\n")
    found = read_extensions(tmp_path / "e.csv", BERLIN)["ada", ""]
    assert found.until == datetime(2026, 3, 5, 23)


def test_days_of_an_extension_keep_the_time_of_the_day(tmp_path):
    (tmp_path / "e.csv").write_text("student,days,hours\nada,2,\nben,,48\n")
    found = read_extensions(tmp_path / "e.csv", BERLIN)
    due = utc("2026-03-28T18:00")
    assert found["ada", ""].due(due, BERLIN) == utc("2026-03-30T18:00")
    assert found["ben", ""].due(due, BERLIN) == utc("2026-03-30T19:00")


@pytest.mark.parametrize(
    ("local", "expected"),
    [
        ("2026-10-25T02:30", datetime(2026, 10, 25, 1, 30)),  # the second time
        ("2026-03-29T02:30", datetime(2026, 3, 29, 1, 30)),  # left out: 03:30 in summer time
    ],
)
def test_the_hour_of_the_change_is_taken_for_the_student(local, expected):
    assert to_utc(datetime.fromisoformat(local), BERLIN) == expected


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("e.csv", "", "e.csv must have columns of student, .*, got $"),
        ("e.csv", "name,days\nada,1\n", "must have columns of .*, got name, days"),
        ("e.csv", "student,student,days\n", "got student, student, days"),
        ("e.csv", "student,days\nada\n", "e.csv, line 2 must have 2 cells, got 1"),
        ("e.csv", "student,days\n,1\n", "student must be named, got none in e.csv, line 2"),
        (
            "e.csv",
            "student,days\nada,\n",
            "one of until, days, hours, got none in e.csv, line 2",
        ),
        ("e.csv", "student,days,hours\na,1,1\n", "got days and hours in e.csv, line 2"),
        ("e.csv", "student,days\na,1.5\n", "days must be a whole number .* got '1.5'"),
        ("e.csv", "student,days\na,-1\n", "days must be a whole number .* got '-1'"),
        ("e.csv", "student,hours\na,0\n", "hours must be a number .* got '0'"),
        ("e.csv", "student,hours\na,nan\n", "hours must be a number .* got 'nan'"),
        ("e.csv", "student,until\na,5.3.2026\n", "until must be a time .* got '5.3.2026'"),
        ("e.csv", "student,until\na,2026-02-30\n", "until must be a time .* got '2026-02-30'"),
        ("e.csv", "student,until\na,9999-12-31\n", "within the years .* got '9999-12-31' in e"),
        (
            "e.csv",
            "student,until\na,0001-01-01T00:00\n",
            "within the years 2 to 9998, got '0001",
        ),
        ("e.toml", "[[extension]]\nstudent = 'a'\nuntil = 9999-12-31", "within the years"),
        ("e.csv", 'student,days\n"a,1\n', "e.csv, line 2 must be CSV"),
        # Lines as an editor counts them: a cell of two lines, a blank one, and a separator of
        # Unicode that ends none.
        ("e.csv", 'student,days\n\n"a\nb",1\n"c\u2028",1\nd,x\n', "got 'x' in e.csv, line 6"),
        (
            "e.csv",
            "student,days\na,1\nb,1\na,2\n",
            "e.csv, line 4 must be the only one of a, got also e.csv, line 2",
        ),
        ("e.csv", b"student,days\n\xe9,1\n", "e.csv must be a text in UTF-8"),
        ("e.toml", "x = 1", r"must have tables \[\[extension\]\] alone, got x"),
        ("e.toml", "extension = 3", "alone, got something else"),
        ("e.toml", "[[extension]\n", "e.toml must be TOML"),
        ("e.toml", "[[extension]]\nstudent = 7\ndays = 1", "student must be a text, got 7"),
        ("e.toml", "[[extension]]\nstudent = 'a'\nday = 1", "extension 1 must have .* got day"),
        ("e.toml", "[[extension]]\nstudent = 'a'\ndays = true", "whole number .* got True"),
        ("e.toml", "[[extension]]\nstudent = 'a'\nuntil = 7", "until must be a time .* got 7"),
        ("e.txt", "", "must end in .csv or .toml, got e.txt"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(tmp_path, name, text, message):
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=message):
        read_extensions(tmp_path / name, BERLIN)


def test_a_file_that_has_changed_is_read_again(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("student,days\nada,1\n")
    assert list(read_extensions(path, BERLIN)) == [("ada", "")]
    path.write_text("student,days\nada,1\nben,2\n")
    assert len(read_extensions(path, BERLIN)) == 2


# The configuration


def policy(**options):
    config = Config()
    config.LatePolicy.update(options)
    return LatePolicy(config=config)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"percent_per_day": -1},
            "LatePolicy.percent_per_day must be between 0 and 100, got -1",
        ),
        ({"percent_per_day": 101}, "percent_per_day must be between 0 and 100, got 101"),
        ({"max_percent": float("nan")}, "max_percent must be between 0 and 100, got nan"),
        ({"grace_minutes": -1}, "LatePolicy.grace_minutes must be 0 or more, got -1"),
        ({"percent_per_day": "ten"}, "LatePolicy: The 'percent_per_day' trait"),
        ({"base": "mark"}, "LatePolicy: The 'base' trait"),
        ({"timezone": "Berlin"}, "timezone must be a name as 'Europe/Berlin', got 'Berlin'"),
        ({"timezone": "../etc/passwd"}, "timezone must be a name"),
        ({"timezone": ""}, "timezone must be a name"),
        ({"extensions": "none.csv"}, "LatePolicy.extensions must be a file, got none.csv: No"),
        ({"percent_per_dya": 5}, "got 'percent_per_dya'; did you mean percent_per_day?"),
        ({"x": 5}, "LatePolicy must have options base, extensions, .* got 'x'$"),
        (
            {"penalty_method": "zero"},
            "penalty_method must be 'none' with LatePolicy, got 'zero'",
        ),
    ],
)
def test_a_wrong_configuration_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        policy(**options)


def test_the_option_that_the_policy_inherits_is_named_too():
    config = Config()
    config.LateSubmissionPlugin.penalty_method = "zero"
    with pytest.raises(ValueError, match="penalty_method must be 'none'"):
        LatePolicy(config=config)


def test_a_policy_is_used_by_nbgrader_alone():
    with pytest.raises(ValueError, match="must be used by AssignLatePenalties"):
        policy().late_submission_penalty("ada", 80.0, 100.0)


def test_a_plug_in_that_there_is_not_is_named():
    config = Config()
    config.AssignLatePenalties.plugin_class = "seqlib.grading.late.policy.Polciy"
    with pytest.raises(ValueError, match=r"AssignLatePenalties: .*Polciy"):
        penalties(config)


# In nbgrader


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    with pytest.MonkeyPatch.context() as monkeypatch:
        tiny_course.register(monkeypatch)
        course = tiny_course.make_course(tmp_path_factory.mktemp("course"), release=False)
        release(course, "tiny")
        register(course, "tiny")
        with open_gradebook(course) as gradebook:
            gradebook.update_or_create_assignment(
                "tiny", duedate="2026-03-02 13:00 Europe/Berlin"
            )
            assert gradebook.find_assignment("tiny").duedate == DUE
    return course.root


@pytest.fixture
def course(template, tmp_path, monkeypatch):
    tiny_course.register(monkeypatch)
    root = tmp_path / "course"
    shutil.copytree(template, root)
    yield Course(root)
    close_graders()


def configure(course, **options):
    path = course.root / "nbgrader_config.py"
    lines = [f"c.LatePolicy.{name} = {value!r}" for name, value in options.items()]
    path.write_text("\n".join([path.read_text(), *lines, ""]))


def hand_in(course, student, late, notebook=None):
    submit(course, student, notebook or solved())
    time = course.submission(student, "tiny") / "timestamp.txt"
    time.write_text(f"{DUE + late:%Y-%m-%d %H:%M:%S} UTC")


def grade(course, *students):
    with (
        Grader(course, "tiny", trust_students=True) as grader,
        Writer(course, "tiny") as writer,
    ):
        for student in students:
            writer.apply(grader.grade(student), force=True)


def points_off(course):
    with open_gradebook(course) as gradebook:
        return {m.student: (m.raw_score, m.penalty) for m in collect_marks(gradebook)}


LATE = {
    "ada": timedelta(minutes=10),
    "ben": 3 * HOUR,
    "grace": 2 * DAY + HOUR,
    "alan": 30 * DAY,
    "kay": 50 * HOUR,
    "zoe": 26 * HOUR,
}
EXTENSIONS = "student,assignment,days,hours\nkay,tiny,2,\nzoe,,1,\nzoe,tiny,,30\nben,other,9,\n"
# Of 80 points, 10 % a day: kay's two days leave two hours, zoe's 30 hours are the longer.
EXPECTED = {"ada": 0.0, "ben": 8.0, "grace": 24.0, "alan": 40.0, "kay": 8.0, "zoe": 0.0}


@pytest.fixture
def late_class(course):
    (course.root / "extensions.csv").write_text(EXTENSIONS)
    configure(
        course,
        percent_per_day=10,
        max_percent=50,
        grace_minutes=15,
        timezone="Europe/Berlin",
        extensions="extensions.csv",
    )
    for student, late in LATE.items():
        hand_in(course, student, late)
    return course


def test_our_command_and_nbgraders_take_the_same_off(late_class, template):
    course = late_class
    grade(course, *LATE)
    ours = points_off(course)
    assert ours == {student: (80.0, EXPECTED[student]) for student in LATE}
    shutil.copy(template / "grading" / "gradebook.db", course.grading)
    shutil.rmtree(course.grading / "autograded")
    config = load_config(course)
    config.JudgeExecute.trust_students = True
    config.CourseDirectory.assignment_id = "tiny"
    Autograde(coursedir=CourseDirectory(config=config), config=config).start()
    assert points_off(course) == ours


def test_newer_work_without_a_time_has_no_penalty_of_the_older_one(late_class):
    grade(late_class, "ben")
    assert points_off(late_class) == {"ben": (80.0, 8.0)}
    (late_class.submission("ben", "tiny") / "timestamp.txt").unlink()
    submit(late_class, "ben", solved(why="By Ben, again."))
    with (
        Grader(late_class, "tiny", trust_students=True) as grader,
        Writer(late_class, "tiny") as writer,
    ):
        record = grader.grade("ben")
        # What is in the gradebook by then is not written again.
        assert [writer.apply(record), writer.apply(record)] == [True, False]
    with Writer(late_class, "tiny") as writer:
        assert not writer.apply(record)
    assert points_off(late_class) == {"ben": (80.0, 0.0)}
    with open_gradebook(late_class) as gradebook:
        assert gradebook.find_submission("tiny", "ben").timestamp is None


def test_an_extension_in_the_gradebook_counts_too(late_class):
    grade(late_class, *LATE)
    with open_gradebook(late_class) as gradebook:
        gradebook.grant_extension("tiny", "grace", days=1)
        gradebook.grant_extension("tiny", "kay", days=1)  # shorter than that of the file
    grade(late_class, *LATE)
    found = points_off(late_class)
    assert found["grace"] == (80.0, 16.0)
    assert found["kay"] == (80.0, 8.0)


def test_a_share_of_all_points_is_taken_where_the_policy_says_so(late_class):
    configure(late_class, base="points")
    grade(late_class, "ben", "alan")
    found = points_off(late_class)
    assert (found["ben"], found["alan"]) == ((80.0, 10.0), (80.0, 50.0))
    hand_in(late_class, "alan", 30 * DAY, solved(add="add = 1", double="double = 1"))
    grade(late_class, "alan")
    # There is no less than nothing.
    assert points_off(late_class)["alan"] == (0.0, 0.0)


def test_without_numbers_nothing_is_taken_off(course):
    hand_in(course, "ada", 40 * DAY)
    grade(course, "ada")
    assert points_off(course) == {"ada": (80.0, 0.0)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"percent_per_day": 500}, "LatePolicy.percent_per_day must be between 0 and 100"),
        ({"percent_a_day": 5}, "did you mean percent_per_day?"),
        ({"extensions": "lost.csv"}, "LatePolicy.extensions must be a file, got .*lost.csv"),
    ],
)
def test_a_wrong_policy_ends_the_run_before_anything_is_graded(course, options, message):
    configure(course, **options)
    hand_in(course, "ada", DAY)
    graded = []
    with pytest.raises(ValueError, match=message):
        batch.grade_class(
            course,
            "tiny",
            workers=1,
            trust_students=True,
            on_result=lambda *a: graded.append(a),
        )
    assert graded == []


# Afterwards


def mark(course, student, points):
    with open_gradebook(course) as gradebook:
        found = gradebook.find_grade("why", "tiny", "tiny", student)
        found.manual_score, found.needs_manual_grade = points, False
        gradebook.db.commit()


def update(course):
    with open_gradebook(course) as gradebook:
        return update_penalties(gradebook, load_config(course))


def test_a_penalty_follows_the_marks_of_a_person(late_class):
    grade(late_class, "ben", "ada")
    mark(late_class, "ben", 15.0)
    mark(late_class, "ada", 15.0)
    assert points_off(late_class)["ben"] == (95.0, 8.0)
    assert update(late_class) == [
        "Extensions of students who are not in the gradebook: kay, zoe.",
        "Extensions of assignments that are not in the gradebook: other.",
        "Penalties for late submissions brought up to date: 1.",
    ]
    assert points_off(late_class) == {"ada": (95.0, 0.0), "ben": (95.0, 9.5)}
    assert len(update(late_class)) == 2


def test_a_penalty_follows_the_due_date_the_policy_and_the_extensions(late_class):
    grade(late_class, *LATE)
    (late_class.root / "extensions.csv").write_text("student,days\nalan,30\n")
    update(late_class)
    # Summer time has begun: 30 days of the calendar are an hour less than his 30 times 24.
    assert points_off(late_class)["alan"] == (80.0, 8.0)
    assert points_off(late_class)["kay"] == (80.0, 24.0)
    assert points_off(late_class)["zoe"] == (80.0, 16.0)  # who had none
    configure(late_class, percent_per_day=5)
    update(late_class)
    assert points_off(late_class)["alan"] == (80.0, 4.0)
    with open_gradebook(late_class) as gradebook:
        gradebook.update_or_create_assignment("tiny", duedate="2026-05-01 12:00 UTC")
    update(late_class)
    assert {off for _, off in points_off(late_class).values()} == {0.0}


def test_an_export_has_the_penalty_of_the_final_marks(late_class):
    grade(late_class, "ben")
    mark(late_class, "ben", 15.0)
    with open_gradebook(late_class) as gradebook:
        said = export(gradebook, late_class, "canvas", out=late_class.root / "c.csv")
    assert "Penalties for late submissions brought up to date: 1." in said
    assert ",ben,,85.5\n" in (late_class.root / "c.csv").read_text()


def test_another_plug_in_of_nbgrader_is_brought_up_to_date_too(course):
    path = course.root / "nbgrader_config.py"
    path.write_text(
        path.read_text()
        + "\nfrom nbgrader.plugins import LateSubmissionPlugin\n"
        + "c.AssignLatePenalties.plugin_class = LateSubmissionPlugin\n"
        + "c.LateSubmissionPlugin.penalty_method = 'zero'\n"
    )
    assert issubclass(LatePolicy, LateSubmissionPlugin)
    hand_in(course, "ada", DAY)
    grade(course, "ada")
    mark(course, "ada", 15.0)
    assert points_off(course) == {"ada": (95.0, 80.0)}
    update(course)
    assert points_off(course) == {"ada": (95.0, 95.0)}


def test_a_wrong_policy_ends_the_export(course):
    hand_in(course, "ada", DAY)
    grade(course, "ada")
    configure(course, percent_per_day=-5)
    with (
        open_gradebook(course) as gradebook,
        pytest.raises(ValueError, match="percent_per_day must be between"),
    ):
        export(gradebook, course, out=course.root / "c.csv")
    assert not (course.root / "c.csv").exists()


def test_report_and_feedback_say_what_it_cost(late_class):
    hand_in(late_class, "max", -DAY)
    grade(late_class, *LATE, "max")
    page, scores = (path.read_text() for path in write_report(late_class, "tiny")[:2])
    for text in (page, scores):
        assert "Late by 3 h: 8 points off." in text
        assert "Late by 10 min: no points off." in text
    assert "Late by" not in next(line for line in scores.splitlines() if line.startswith("max"))
    config = load_config(late_class)
    config.CourseDirectory.assignment_id = "tiny"
    config.CourseDirectory.student_id = "ben"
    GenerateFeedback(coursedir=CourseDirectory(config=config), config=config).start()
    page = (late_class.grading / "feedback/ben/tiny/tiny.html").read_text()
    assert "Late submission penalty (Score: -8.0)" in page
