"""Marks in the files of learning platforms, read back by strict parsers."""

import csv
import dataclasses
import io

import platform_files
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqlib.grading.export.fill import PLATFORMS, export_marks
from seqlib.grading.export.marks import Mark, points_text
from seqlib.grading.export.sheet import Sheet

CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Homework (7),Tiny (4711),Current Score\r\n"
    ",,,,,Manual Posting,,\r\n"
    "    Points Possible,,,,,10.00,100.00,(read only)\r\n"
    '"Lovelace, Ada",11,A1,ada,"S ""1"", a",9.50,,91.2\r\n'
    '"O\'Brien, Bén",12,A2,ben,S1,,50.00,\r\n'
    '"Hopper, Grace",13,A3,grace,S1,,EX,\r\n'
    '"Turing, Alan",14,A4,alan,S2,,N/A,\r\n'
    '"Student, Test",15,,0a1b2c,S1,,,\r\n'
).encode()
MOODLE = (
    "\ufeffIdentifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,"
    "Last modified (submission),Last modified (grade),Feedback comments\n"
    'Participant 501,"Ada, Countess",ada@x.org,"Submitted for grading",,100.00,Yes,'
    '"Monday, 2 March 2026, 9:00 AM",-,"<p>Well ""done"",\nAda</p>"\n'
    "Participant 502,Bén,ben@x.org,,50.00,100.00,Yes,-,-,\n"
    "Participant 503,Grace,grace@x.org,,,100.00,No,-,-,\n"
    "Participant 504,Alan,alan@x.org,,,100.00,Yes,-,-,\n"
).encode()
BLACKBOARD = (
    '"Last Name"\t"First Name"\t"Username"\t"Student ID"\t"Last Access"\t"Availability"\t'
    '"Weighted Total [Total Pts: up to 100 Percentage] |99"\t'
    '"Tiny [Total Pts: 100 Score] |4711"\n'
    '"Lovelace"\t"Ada"\t"ada"\t"A1"\t"2026-03-02 09:00:00"\t"Yes"\t"12,5"\t""\n'
    '"O\'Brien"\t"B""én"\t"ben"\t"A2"\t""\t"Yes"\t""\t"50.00"\n'
    '"Hopper"\t"Grace"\t"grace"\t"A3"\t""\t"Yes"\t""\t""\n'
    '"Turing"\t"Alan"\t"alan"\t"A4"\t""\t"No"\t""\t""\n'
).encode("utf-16")
TEMPLATES = {"canvas": CANVAS, "moodle": MOODLE, "blackboard": BLACKBOARD}
NUMBERS = {"ada": "501", "ben": "502", "grace": "503", "alan": "504"}
OPEN = ("a person has yet to mark an answer",)


def mark(student, score, **fields):
    given = {"raw_score": score, "penalty": 0.0, "max_score": 100.0, "score": score}
    if score is None:
        given |= {"raw_score": None, "penalty": None}
    names = {"last_name": student.title(), "first_name": "X", "email": f"{student}@x.org"}
    return Mark("tiny", student, **{**names, **given, **fields})


@pytest.fixture
def marks():
    """Return a mark to be filled in, one that is there, one that is open and one of nobody."""
    return [mark("ada", 87.25), mark("ben", 50.0), mark("alan", 70.0, open=OPEN)]


def cells(data, platform):
    rows = {
        "canvas": lambda: platform_files.canvas(data)[0],
        "moodle": lambda: platform_files.moodle(data),
        "blackboard": lambda: platform_files.blackboard(data),
    }[platform]()
    title = {"canvas": "Tiny", "blackboard": "Tiny"}.get(platform)
    if platform == "moodle":
        return {key: grade for key, (grade, _) in rows.items()}
    return {key: grades[title] for key, grades in rows.items()}


def key(platform, student):
    return NUMBERS[student] if platform == "moodle" else student


# Templates


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_template_is_filled_and_read_back(platform, marks):
    done = export_marks(marks, platform, template=TEMPLATES[platform])
    found = cells(done.data, platform)
    before = cells(TEMPLATES[platform], platform)
    assert found == before | {key(platform, "ada"): "87.25"}
    assert [m.student for m, _ in done.written] == ["ada", "ben"]
    assert [(m.student, out) for m, out, _ in done.open] == [("alan", False)]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_all_other_bytes_of_a_template_stay(platform, marks):
    template = TEMPLATES[platform]
    encoding = "utf-16" if platform == "blackboard" else "utf-8"
    before = template.decode(encoding)
    after = export_marks(marks, platform, template=template).data.decode(encoding)
    # One cell was empty and has a mark; one has the same number in another form.
    assert after.replace("87.25", "", 1) == before
    assert len(after) == len(before) + len("87.25")
    again = export_marks(marks, platform, template=after.encode(encoding)).data
    assert again.decode(encoding) == after


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_a_file_without_marks_to_write_stays_as_it_is(platform, end):
    text = TEMPLATES[platform]
    if platform != "blackboard":
        text = text.rstrip() + end.encode()
    assert export_marks([mark("ada", None)], platform, template=text).data == text
    assert Sheet(text).data() == text


def test_a_student_without_a_grade_gets_no_0():
    nothing = [mark("ada", None), mark("ben", None), mark("grace", 0.0)]
    for platform in ("canvas", "blackboard"):
        made = export_marks(nothing, platform).data
        found = getattr(platform_files, platform)(made)
        grades = found[0] if platform == "canvas" else found
        assert {s: g["tiny"] for s, g in grades.items()} == {"ada": "", "ben": "", "grace": "0"}
    numbered = [dataclasses.replace(m, platform_id=NUMBERS[m.student]) for m in nothing]
    found = platform_files.moodle(export_marks(numbered, "moodle").data)
    assert found == {"501": ("", None), "502": ("", None), "503": ("0", None)}


def test_canvas_keeps_who_is_excused_or_has_no_such_assignment():
    done = export_marks([mark("grace", 1.0), mark("alan", 2.0)], "canvas", template=CANVAS)
    assert done.data == CANVAS
    assert [note for _, _, note in done.open] == [
        "Not exported: excused in Canvas.",
        "Not exported: not assigned to this student in Canvas.",
    ]


def test_moodle_gets_nothing_that_it_would_skip_in_silence():
    most = [mark("grace", 1.0), mark("alan", 101.0)]
    done = export_marks(most, "moodle", template=MOODLE)
    assert done.data == MOODLE
    assert [note for _, _, note in done.open] == [
        "Not exported: locked in Moodle.",
        "Not exported: above the maximum of 100, which Moodle does not take.",
    ]


# Marks that are not final


@pytest.mark.parametrize("platform", PLATFORMS)
def test_an_open_mark_goes_out_only_when_asked_for_and_with_its_note(platform, marks):
    template = TEMPLATES[platform].replace(b"N/A", b"")
    done = export_marks(marks, platform, template=template, provisional=True)
    assert cells(done.data, platform)[key(platform, "alan")] == "70"
    ((found, exported, note),) = done.open
    assert (found.student, exported) == ("alan", True)
    assert note == "Not final: a person has yet to mark an answer."
    (row,) = done.notes()
    assert (row["student_id"], row["exported"], row["note"]) == ("alan", "yes", note)
    if platform == "moodle":
        comments = platform_files.moodle(done.data)
        assert comments["504"] == ("70", note)
        # Moodle would delete a comment for an empty cell.
        assert comments["501"][1] == '<p>Well "done",\nAda</p>'
        again = export_marks(marks, platform, template=done.data, provisional=True)
        assert again.data == done.data


def test_a_note_is_put_behind_what_a_comment_says():
    done = export_marks(
        [mark("ada", 1.0, open=OPEN)], "moodle", template=MOODLE, provisional=True
    )
    assert platform_files.moodle(done.data)["501"][1] == (
        '<p>Well "done",\nAda</p> Not final: a person has yet to mark an answer.'
    )


def test_the_note_of_an_earlier_export_goes_when_the_mark_is_final():
    first = export_marks(
        [mark("ada", 1.0, open=OPEN), mark("alan", 2.0, open=OPEN)],
        "moodle",
        template=MOODLE,
        provisional=True,
    )
    other = ("part of the work could not be graded",)
    again = [mark("ada", 5.0), mark("alan", 6.0, open=other)]
    done = export_marks(again, "moodle", template=first.data, provisional=True)
    found = platform_files.moodle(done.data)
    assert found["501"] == ("5", '<p>Well "done",\nAda</p>')
    assert found["504"] == ("6", "Not final: part of the work could not be graded.")


def test_blackboard_has_its_notes_where_students_do_not_see_them():
    text = (
        '"Username"\t"Tiny [Total Pts: 100 Score] |4711"\t"Grading Notes"\t"Notes Format"\t'
        '"Feedback to Learner"\t"Feedback Format"\n"ada"\t""\t""\t""\t""\t""\n'
    )
    done = export_marks(
        [mark("ada", 1.0, open=OPEN)],
        "blackboard",
        template=text.encode("utf-16"),
        provisional=True,
    )
    row = platform_files.table(done.data, "\t", "utf-16")[1]
    assert row == ["ada", "1", "Not final: a person has yet to mark an answer.", "", "", ""]


# Files without a template


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_file_is_made_where_there_is_none(platform, marks):
    numbered = [dataclasses.replace(m, platform_id=NUMBERS[m.student]) for m in marks]
    done = export_marks(numbered, platform, provisional=True)
    reader = getattr(platform_files, platform)
    if platform == "moodle":
        found = {number: grade for number, (grade, _) in reader(done.data).items()}
        assert found == {"501": "87.25", "502": "50", "504": "70"}
        return
    found = reader(done.data)
    if platform == "canvas":
        found, points = found
        assert points == {"tiny": "100"}
    assert {s: g["tiny"] for s, g in found.items()} == {
        "ada": "87.25",
        "ben": "50",
        "alan": "70",
    }


def test_several_assignments_are_columns_of_one_file():
    other = dataclasses.replace(mark("ada", 3.0), assignment="other", max_score=10.0)
    done = export_marks([mark("ada", 1.5), other], "canvas")
    assert platform_files.canvas(done.data) == (
        {"ada": {"tiny": "1.5", "other": "3"}},
        {"tiny": "100", "other": "10"},
    )
    with pytest.raises(ValueError, match="must be one for a worksheet of Moodle, got other, t"):
        export_marks([mark("ada", 1.5), other], "moodle", template=MOODLE)
    done = export_marks([mark("ada", 1.5), other], "canvas", template=CANVAS)
    assert "No column, and so no mark, for other." in done.remarks


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("template", [False, True])
def test_an_assignment_without_points_makes_no_column(platform, template):
    """It is planned, with a due date in the gradebook, and not released."""
    planned = [
        dataclasses.replace(mark(s, None, max_score=0.0), assignment="next")
        for s in ("ada", "ben")
    ]
    numbered = [mark("ada", 5.0, platform_id=NUMBERS["ada"])]
    given = TEMPLATES[platform] if template else None
    plain = export_marks(numbered, platform, template=given)
    done = export_marks([*planned, *numbered], platform, template=given)
    assert done.data == plain.data
    assert done.remarks[0] == "No points in the gradebook, and so no column, for next."
    with pytest.raises(ValueError, match="points of next must be above 0, got 0 in the grad"):
        export_marks(planned, platform, template=given)
    with pytest.raises(ValueError, match="points of next must be above 0"):
        export_marks([*planned, *numbered], platform, template=given, columns={"next": "N"})


@pytest.mark.parametrize("rescale", [False, True])
@pytest.mark.parametrize(
    ("platform", "old", "new"),
    [
        ("canvas", b"100.00,(read", b"0,(read"),
        ("moodle", b"100.00,Yes", b"0.00,Yes"),
        ("blackboard", "100 Score".encode("utf-16-le"), "0 Score".encode("utf-16-le")),
    ],
)
def test_a_column_of_0_points_makes_no_mark_0(platform, old, new, rescale):
    template = TEMPLATES[platform]
    assert old in template
    with pytest.raises(ValueError, match=r"must be above 0, got 0; set 100 on the platform"):
        export_marks(
            [mark("ada", 5.0)], platform, template=template.replace(old, new), rescale=rescale
        )


NAMES = ["=1+1", "+49", "-x", "@sum", "\t=1", "\r=1", " =1", 'a"b,c;d', "Zoë", "x\ny", "李"]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_names_start_no_formula_and_students_are_still_found(platform):
    hostile = [
        mark(f"s{i}", float(i), last_name=n, first_name=n, email=n, platform_id=str(600 + i))
        for i, n in enumerate(NAMES)
    ]
    data = export_marks(hostile, platform).data
    rows = platform_files.table(data, encoding="utf-8-sig")
    assert platform_files.formulas(rows) == []
    reader = getattr(platform_files, platform)
    if platform == "moodle":
        found = {number: grade for number, (grade, _) in reader(data).items()}
        assert found == {str(600 + i): str(i) for i in range(len(NAMES))}
    else:
        found = reader(data)[0] if platform == "canvas" else reader(data)
        assert {s: g["tiny"] for s, g in found.items()} == {
            f"s{i}": str(i) for i in range(len(NAMES))
        }


@pytest.mark.parametrize("platform", ["canvas", "blackboard"])
@pytest.mark.parametrize("student", ["=cmd", "+1", "-1", "@x", "a\tb", "a\x00"])
def test_an_id_that_begins_like_a_formula_is_refused(platform, student):
    with pytest.raises(ValueError, match="id must not begin like a formula") as caught:
        export_marks([mark(student, 1.0)], platform)
    assert repr(student) in str(caught.value)


def test_the_platforms_own_formulas_stay_and_are_named():
    template = CANVAS.replace(b'"Turing, Alan"', b'=HYPERLINK("x")'.replace(b'"', b""))
    done = export_marks([mark("ada", 1.0)], "canvas", template=template)
    assert b"\r\n=HYPERLINK(x),14," in done.data
    assert any("begin like a formula, in line 7" in remark for remark in done.remarks)
    assert not any("formula" in r for r in export_marks([mark("ada", 1.0)], "canvas").remarks)


@pytest.mark.parametrize(
    "about",
    [
        {},
        {"student": "40007"},
        {"student": "40007", "source": "canvas:40007"},
        {"source": "canvas:40007", "platform_id": "40007"},
    ],
)
def test_moodle_without_numbers_asks_for_the_worksheet(about):
    """A number of a university or of Canvas would be that of another participant."""
    about = {"student": "ada"} | about
    with pytest.raises(ValueError, match=r"known by the number of Moodle.*got '.*--template"):
        export_marks([mark(score=1.0, **about)], "moodle")


# Students and columns


@pytest.mark.parametrize(
    ("students", "column"),
    [
        (["11", "12"], "ID"),
        (["A1", "A2"], "SIS User ID"),
        (["ada", "ben"], "SIS Login ID"),
        (["ADA", "Ben "], "SIS Login ID"),
        (["11", "12", "alan"], "ID"),
    ],
)
def test_the_column_that_finds_most_students_is_taken(students, column):
    nameless = [mark(s, 5.0, last_name="", first_name="") for s in students]
    done = export_marks(nameless, "canvas", template=CANVAS)
    assert f"Matched by {column}: 2 of {len(students)} students." in done.remarks
    found = platform_files.canvas(done.data)[0]
    assert [found[s]["Tiny"] for s in ("ada", "ben")] == ["5", "5"]


def test_students_are_found_by_the_platforms_id_or_the_address():
    done = export_marks([mark("s1", 5.0, platform_id="12")], "canvas", template=CANVAS)
    assert platform_files.canvas(done.data)[0]["ben"]["Tiny"] == "5"
    done = export_marks([mark("s1", 5.0, email="Alan@x.org")], "moodle", template=MOODLE)
    assert platform_files.moodle(done.data)["504"][0] == "5"


def test_one_students_number_is_not_anothers_in_the_next_column():
    """The id 12 of a student is the platform's number of Ben, who is in the gradebook too."""
    both = [mark("12", 5.0), mark("x", 6.0, platform_id="12"), mark("y", 7.0, platform_id="13")]
    with pytest.raises(ValueError, match="ID must tell students apart, got '12' for 12, x"):
        export_marks(both, "canvas", template=CANVAS)


def test_a_column_that_finds_as_many_students_elsewhere_is_asked_about():
    """The id 12 of Ada is Ben's number in Canvas, and Ben has no mark."""
    template = CANVAS.replace(b",11,A1,", b",11,12,")
    with pytest.raises(ValueError, match=r"other rows by ID than by SIS User ID; .* --match"):
        export_marks([mark("12", 5.0, email="")], "canvas", template=template)
    done = export_marks([mark("12", 5.0)], "canvas", template=template, match="SIS User ID")
    found = platform_files.canvas(done.data)[0]
    assert (found["ada"]["Tiny"], found["ben"]["Tiny"]) == ("5", "50.00")


@pytest.mark.parametrize(
    ("platform", "old", "by"),
    [
        ("canvas", b"12,A2,", "ID"),
        ("moodle", b"Participant 502", "Email address"),
        ("blackboard", '"ben"'.encode("utf-16-le"), "Username"),
    ],
)
def test_a_number_that_is_somebody_elses_by_chance_takes_no_mark(platform, old, by):
    """The number of Ada at her university is Ben's in the file, which has no row of hers."""
    template = TEMPLATES[platform]
    assert old in template
    if platform == "moodle":
        template = template.replace(b"ben@x.org", b"12")
    if platform == "blackboard":
        template = template.replace(old, '"12"'.encode("utf-16-le"))
    ada = mark("12", 5.0, last_name="Lovelace", first_name="Ada", email="")
    done = export_marks([ada], platform, template=template)
    assert done.data == template
    ((_, exported, note),) = done.open
    assert not exported
    assert "has the number, and is of" in note
    # Chosen by hand, or for all that is known his own, it is his.
    for again, more in (
        (ada, {"match": by}),
        (dataclasses.replace(ada, last_name="", first_name=""), {}),
        (dataclasses.replace(ada, first_name="Bén O'Brien"), {}),
    ):
        assert export_marks([again], platform, template=template, **more).written


def test_a_number_that_is_not_moodles_names_no_participant():
    """Ids 501 and 502 of a university are participants' numbers of others."""
    students = [mark("501", 5.0, email=""), mark("x", 6.0, email="", platform_id="502")]
    with pytest.raises(ValueError, match=r"must name students of the gradebook \(501, x"):
        export_marks(students, "moodle", template=MOODLE)
    done = export_marks(students, "moodle", template=MOODLE, match="Identifier")
    assert [text for _, text in done.written] == ["5", "6"]
    students = [mark("s1", 5.0, email="", source="moodle:501")]
    done = export_marks(students, "moodle", template=MOODLE)
    assert platform_files.moodle(done.data)["501"][0] == "5"


def test_two_assignments_are_never_one_column():
    both = [mark("ada", 5.0), dataclasses.replace(mark("ada", 6.0), assignment="other")]
    columns = {"tiny": "Tiny (4711)", "other": "Tiny (4711)"}
    with pytest.raises(
        ValueError, match=r"one assignment, got 'Tiny \(4711\)' for other, tiny"
    ):
        export_marks(both, "canvas", template=CANVAS, columns=columns)


def test_a_student_in_two_rows_is_refused():
    template = CANVAS.replace(b",ben,", b",ada,")
    with pytest.raises(ValueError, match=r"in one row for each student, got ada in 4, 5"):
        export_marks([mark("ada", 5.0)], "canvas", template=template)


def test_a_column_of_ids_can_be_chosen():
    students = [mark("ada", 5.0), mark("A2", 6.0), mark("13", 7.0)]
    done = export_marks(students, "canvas", template=CANVAS, match="SIS User ID")
    found = platform_files.canvas(done.data)[0]
    assert (found["ada"]["Tiny"], found["ben"]["Tiny"]) == ("", "6")
    assert done.unmatched == ["13", "ada"]
    with pytest.raises(ValueError, match="match must be a column of template, got 'Email'"):
        export_marks(students, "canvas", template=CANVAS, match="Email")


def test_a_template_of_another_class_is_refused():
    with pytest.raises(
        ValueError, match=r"must name students of the gradebook \(nobody, \.\.\."
    ):
        export_marks([mark("nobody", 5.0, email="")], "canvas", template=CANVAS)


def test_a_column_can_be_named():
    done = export_marks(
        [mark("ada", 5.0, max_score=10.0)],
        "canvas",
        template=CANVAS,
        columns={"tiny": "Homework (7)"},
    )
    assert platform_files.canvas(done.data)[0]["ada"]["Homework"] == "5"
    for wanted in ("Homework (8)", "ID", "Current"):
        with pytest.raises(ValueError, match="must have a column for tiny, got Student, ID"):
            export_marks(
                [mark("ada", 5.0)], "canvas", template=CANVAS, columns={"tiny": wanted}
            )


def test_a_column_of_the_course_is_found_by_its_title():
    """The assignment ``attention`` has a title of its own."""
    from seqlib.exercises import get_assignment

    title = get_assignment("attention").title
    template = CANVAS.replace(b"Tiny (4711)", f'"{title} (4711)"'.encode())
    one = dataclasses.replace(mark("ada", 5.0), assignment="attention")
    done = export_marks([one], "canvas", template=template)
    assert platform_files.canvas(done.data)[0]["ada"][title] == "5"


@pytest.mark.parametrize(
    ("platform", "old", "new", "message"),
    [
        ("canvas", b"Homework (7)", b"tiny (8)", "column of tiny must be one, got tiny"),
        ("canvas", b"100.00,(read", b"(read only),(read", "column must take marks"),
        ("canvas", b"100.00", b"10", "points of 'Tiny .*' must be 100 .*, got 10"),
        ("moodle", b"Identifier", b"Identifikation", "in English, got no column Identifier"),
        ("moodle", b"Last modified (grade)", b"x", "no column Last modified"),
        ("moodle", b"Maximum Grade", b"Scale", "points, got one with a scale"),
        ("moodle", b"100.00,Yes", b"20,Yes", "points of 'Grade' must be 100 .*, got 20"),
        ("canvas", b'Ada"', b'Ada"x', "quotation mark in line 4"),
        ("canvas", b'"S ""1"", a"', b'"S ""1"", a', "quotation mark in line 5"),
        ("canvas", b",ada,", b",ada,x,", "must have 8 cells in each row.*got 9 in line 4"),
        ("canvas", "é".encode(), b"\xe9", "must be UTF-8, or UTF-16 .* got other bytes at"),
        ("canvas", b"Student,ID", b"\xff\xfeStudent,ID", "must be UTF-8, or UTF-16"),
        ("canvas", b"ada", b"a\x00da", "got one with null characters"),
    ],
)
def test_what_does_not_fit_is_named(platform, old, new, message):
    template = TEMPLATES[platform]
    assert old in template
    with pytest.raises(ValueError, match=message):
        export_marks([mark("ada", 5.0)], platform, template=template.replace(old, new))


@pytest.mark.parametrize("data", [b"", b"\n\n", b",,\n"])
def test_an_empty_template_is_named(data):
    with pytest.raises(ValueError, match="template must"):
        export_marks([mark("ada", 5.0)], "canvas", template=data)


def test_other_wrong_arguments_are_named():
    with pytest.raises(ValueError, match=r"platform must be one of canvas, .*, got 'ilias'"):
        export_marks([mark("ada", 5.0)], "ilias")
    with pytest.raises(ValueError, match="marks must hold a student"):
        export_marks([], "canvas")
    with pytest.raises(ValueError, match="column must be of an exported assignment, got x"):
        export_marks([mark("ada", 5.0)], "canvas", columns={"x": "y"})
    text = BLACKBOARD.decode("utf-16").replace("100 Score", "100 Percentage")
    with pytest.raises(ValueError, match="column must be of scores, got 'Tiny "):
        export_marks([mark("ada", 5.0)], "blackboard", template=text.encode("utf-16"))


def test_marks_are_converted_when_asked_for():
    template = CANVAS.replace(b"100.00,(read", b"20,(read")
    done = export_marks([mark("ada", 33.0)], "canvas", template=template, rescale=True)
    assert platform_files.canvas(done.data)[0]["ada"]["Tiny"] == "6.6"


# Numbers and tables


@pytest.mark.parametrize(
    ("points", "text"),
    [(0.1 + 0.2, "0.3"), (1e-9, "0"), (-0.0, "0"), (1234567.0, "1234567"), (2 / 3, "0.66667")],
)
def test_points_have_no_exponent_and_no_noise(points, text):
    assert points_text(points) == text


@pytest.mark.parametrize("points", [float("nan"), float("inf"), -1.0])
def test_what_are_no_points_is_refused(points):
    with pytest.raises(ValueError, match="points must be finite and not negative"):
        points_text(points)


CELL = st.text(alphabet='a1 ,;\t"\n\r=é', max_size=6)
ROWS = st.integers(2, 4).flatmap(
    lambda n: st.lists(st.lists(CELL, min_size=n, max_size=n), min_size=2, max_size=4)
)


@given(
    ROWS,
    CELL,
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_any_table_is_read_as_by_csv_and_one_cell_is_changed(
    rows, text, delimiter, encoding, quoting, end
):
    rows[0] = [f"column {i}" for i in range(len(rows[0]))]
    if end == "\n":  # the writer would not quote the other end
        rows, text = (
            [[c.replace("\r", "") for c in row] for row in rows],
            text.replace("\r", ""),
        )
    file = io.StringIO(newline="")
    options = {"delimiter": delimiter, "lineterminator": end, "quoting": quoting}
    csv.writer(file, **options).writerows(rows)
    data = file.getvalue().encode(encoding)
    sheet = Sheet(data)
    assert sheet.data() == data
    width = len(rows[0])
    read = [[sheet.value(r, c) for c in range(width)] for r in range(len(sheet))]
    assert read == rows
    sheet.fill(1, 1, text)
    after = list(
        csv.reader(
            io.StringIO(sheet.data().decode(encoding), newline=""),
            delimiter=delimiter,
            strict=True,
        )
    )
    assert after[1][1] == text or float(after[1][1]) == float(text)
    after[1][1] = rows[1][1]
    assert after == rows
