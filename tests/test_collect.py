"""Collecting: the exports of each platform, with every oddity, end in the right folders."""

import itertools
import json
import unicodedata
import uuid
from datetime import datetime

import exports_made as made
import pytest
import tiny_course
from desk_tools import run

import seqlib.cli as cli
from seqlib.grading.collect.report import report_lines
from seqlib.grading.collect.run import collect
from seqlib.grading.gradebook.writer import register
from seqlib.grading.notebook.intake import take_in

COUNT = 60
PDF = b"%PDF-1.7 not a notebook"
JUNK = [
    ("__MACOSX/._tiny.ipynb", b"\0\5\26\7"),
    (".DS_Store", b"\0\0\0\1Bud1"),
    (".ipynb_checkpoints/tiny-checkpoint.ipynb", b"{}"),
]


@pytest.fixture
def course(tmp_path):
    root = tmp_path / "course"
    root.mkdir()
    return tiny_course.make_course(root)


def notebook(student, more=""):
    """Return the work of one student, which no other has."""
    return tiny_course.as_bytes(tiny_course.solved(why=f"By {student.id}{more}."))


def submitted(course):
    """Return ``{student: {file: content}}`` of what lies there to be graded, without times."""
    found = {}
    for path in sorted((course.grading / "submitted").glob("*/tiny/*")):
        student = path.parent.parent.name
        if path.name != "timestamp.txt":
            found.setdefault(student, {})[path.name] = path.read_bytes()
    return found


def times(course):
    found = (course.grading / "submitted").glob("*/tiny/timestamp.txt")
    return {path.parent.parent.name: path.read_text() for path in found}


def tree(course):
    """Return every file under ``grading`` with its content and time of change."""
    files = (path for path in course.grading.rglob("*") if path.is_file())
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def places(entries):
    return {entry["where"]: entry["reason"] for entry in entries}


def odd_class():
    """Return a class of sixty, what they uploaded, and what of it is to be graded.

    The last one uploads nothing, and the second but last no notebook.
    """
    students = made.people(COUNT)
    uploads, expected = [], {}
    for student in students[:-1]:
        work = notebook(student)
        files, wanted = [("tiny.ipynb", work)], {"tiny.ipynb": work}
        match COUNT - student.number:
            case 1:
                files, wanted = [("tiny.pdf", PDF)], {}
            case 2:  # a zip in a zip, from a Mac
                inner = made.zipped([("work/tiny.ipynb", work), *JUNK], marked=False)
                files = [("abgabe.zip", made.zipped([("inner.zip", inner), *JUNK]))]
            case 3:
                files = [("my work (final).ipynb", work)]
                wanted = {"my work (final).ipynb": work}
            case 4:  # a name that is like the submission of another student
                victim = students[20]
                forged = (
                    f"x_{victim.canvas}_77_{victim.name}_{victim.participant}_assignsubmission_"
                    f"file_{victim.id}_attempt_2026-01-01-00-00-00_tiny.ipynb"
                )
                files, wanted = [(forged, work)], {forged: work}
            case 5:
                files = [(made.decomposed("lösung é.ipynb"), work)]
                wanted = {"lösung é.ipynb": work}
            case 6:  # claims about itself
                claims = [
                    ("timestamp.txt", b"2000-01-01 00:00:00 UTC"),
                    ("student_id", b"s0001"),
                ]
                files = [("all.zip", made.zipped([("s0001/tiny.ipynb", work), *claims]))]
            case 7:
                files, wanted = [("tiny", work)], {"tiny.ipynb": work}
            case 8:
                files = [*files, ("numpy.py", b"raise SystemExit"), ("tiny.pdf", PDF)]
            case 9:
                files = [("tiny.ipynb.txt", work)]
                wanted = {"tiny.ipynb.txt": work}
        uploads.append(made.Upload(student, files))
        if wanted:
            expected[student.id] = wanted
    return students, uploads, expected


FORMS = {
    "canvas": lambda path, uploads: made.write_zip(
        path / "submissions.zip", made.canvas_files(uploads), marked=False
    ),
    "canvas, marked names": lambda path, uploads: made.write_zip(
        path / "submissions.zip", made.canvas_files(uploads)
    ),
    "moodle": lambda path, uploads: made.write_zip(
        path / "CS-Tiny-771.zip", made.moodle_files(uploads)
    ),
    "moodle, older": lambda path, uploads: made.write_zip(
        path / "CS-Tiny-771.zip", made.moodle_files(uploads, end="_")
    ),
    "moodle, flat": lambda path, uploads: made.write_zip(
        path / "CS-Tiny-771.zip", made.moodle_files(uploads, folders=False)
    ),
    "blackboard": lambda path, uploads: made.write_zip(
        path / "gradebook.zip", made.blackboard_files(uploads)
    ),
    "blackboard, without notes": lambda path, uploads: made.write_zip(
        path / "gradebook.zip", made.blackboard_files(uploads, notes=False)
    ),
    "gradescope": lambda path, uploads: made.write_zip(
        path / "submissions.zip", made.gradescope_files([[upload] for upload in uploads])
    ),
    "generic": lambda path, uploads: made.write_zip(
        path / "all.zip", [(f"{u.student.id}/{n}", c) for u in uploads for n, c in u.files]
    ),
    "generic, a wrapper and nbgrader's layout": lambda path, uploads: made.write_zip(
        path / "all.zip",
        [(f"submitted/{u.student.id}/tiny/{n}", c) for u in uploads for n, c in u.files],
    ),
    "generic, zips": lambda path, uploads: made.write_zip(
        path / "all.zip", [(f"{u.student.id}_Tiny.zip", made.zipped(u.files)) for u in uploads]
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("unpacked", [False, True])
def test_every_oddity_ends_in_the_right_folder(course, tmp_path, form, unpacked):
    students, uploads, expected = odd_class()
    export = FORMS[form](tmp_path, uploads)
    if unpacked:
        files = made.read_zip(export)
        export = made.write_zip(tmp_path / "unpacked", [*files, *JUNK])
    roster = made.roster(tmp_path / "roster.csv", students)
    if form.startswith("moodle"):
        # Moodle's numbers are in its worksheet alone.
        roster = made.moodle_worksheet(tmp_path / "worksheet.csv", students, uploads)
    report = collect(course, [export], "tiny", roster=roster, timezone="Europe/Berlin")
    assert report.platform == form.partition(",")[0]
    assert submitted(course) == expected
    assert report.collected == sorted(expected)
    assert report.missing == [students[-1].id]
    assert report.without_notebook == [students[-2].id]
    assert report.unmatched == report.refused == report.late == []
    assert report.doubled == {}
    assert not {"s0001"} & set(report.without_notebook)
    strays = " ".join(f"{where}: {why}\n" for where, why in places(report.stray).items())
    for stray in ("tiny.pdf: no notebook", "numpy.py: no notebook", "left by macOS"):
        assert stray in strays
    assert "timestamp.txt: a time that the student wrote is not used" in strays


@pytest.mark.parametrize("form", FORMS)
def test_a_second_run_changes_nothing(course, tmp_path, form):
    _students, uploads, expected = odd_class()
    export = FORMS[form](tmp_path, uploads)
    first = collect(course, [export], "tiny")
    before = tree(course)
    second = collect(course, [export], "tiny")
    assert tree(course) == before
    assert second.unchanged == sorted(first.collected)
    # Without a roster, a file that is called like another user's of Canvas is nobody's.
    assert len(first.unmatched) == form.startswith("canvas")
    assert len(second.unchanged) == len(expected) - len(first.unmatched)
    assert second.collected == second.replaced == second.retimed == second.older == []


# Times and identities come from the platform


def test_times_come_from_the_platform_and_in_its_zone(course, tmp_path):
    students = made.people(4)
    uploads = [
        made.Upload(s, [("tiny.ipynb", notebook(s))], time=datetime(2026, 1, 31, 12, 45))
        for s in students
    ]
    ids = {s.id for s in students}
    for files, more, at in (
        (made.blackboard_files(uploads), {}, "17:45:00"),  # EST, from the note
        (made.blackboard_files(uploads, zone="CET"), {"timezone": "Europe/Berlin"}, "11:45:00"),
        (
            made.blackboard_files(uploads, notes=False),
            {"timezone": "Asia/Kolkata"},
            "07:15:00",
        ),
        (made.gradescope_files([[u] for u in uploads]), {}, "12:45:00"),
        (
            made.moodle_files(uploads),
            {
                "roster": made.moodle_worksheet(tmp_path / "w.csv", students, uploads),
                "timezone": "Europe/Berlin",
            },
            "11:45:00",
        ),
        (
            made.canvas_files(uploads),
            {
                "roster": made.roster(
                    tmp_path / "r.csv", students, submitted_at=lambda s: "2026-02-01T08:00:00Z"
                )
            },
            "08:00:00",
        ),
    ):
        root = tmp_path / f"course{len(list(tmp_path.iterdir()))}"
        root.mkdir()
        other = tiny_course.make_course(root)
        report = collect(other, [made.write_zip(tmp_path / "e.zip", files)], "tiny", **more)
        day = "2026-02-01" if at == "08:00:00" else "2026-01-31"
        assert times(other) == dict.fromkeys(ids, f"{day} {at} UTC\n")
        assert report.without_time == []
        assert report.notes == []


def test_a_time_without_a_zone_is_said_to_be_assumed(course, tmp_path):
    student = made.people(1)[0]
    files = made.blackboard_files([made.Upload(student, [("tiny.ipynb", b"{}")])], notes=False)
    report = collect(course, [made.write_zip(tmp_path / "b.zip", files)], "tiny")
    assert times(course) == {"s0001": "2026-01-31 12:45:00 UTC\n"}
    assert "1 times name no zone that is known and were read as UTC" in report.notes[0]


def test_canvas_gives_no_time_and_its_mark_for_late_is_reported(course, tmp_path):
    students = made.people(12)
    uploads = [
        made.Upload(s, [("tiny.ipynb", notebook(s))], late=s.number in (3, 9)) for s in students
    ]
    export = made.write_zip(tmp_path / "c.zip", made.canvas_files(uploads))
    report = collect(course, [export], "tiny", roster=made.roster(tmp_path / "r.csv", students))
    assert report.late == ["s0003", "s0009"]
    assert report.without_time == [s.id for s in students]
    assert times(course) == {}


def test_a_time_in_an_archive_or_of_a_file_is_never_used(course, tmp_path):
    # The entries of all exports here are of 2020, which no timestamp may say.
    _students, uploads, _ = odd_class()
    for form, make in FORMS.items():
        root = tmp_path / form.replace(",", "")
        root.mkdir()
        export = make(tmp_path, uploads)
        (root / "c").mkdir()
        other = tiny_course.make_course(root / "c")
        collect(other, [export], "tiny")
        assert "2020" not in "".join(times(other).values()), form


# Canvas


def test_the_number_of_a_resubmission_is_no_part_of_the_name(course, tmp_path):
    first, second, third = made.people(3)
    old, new = notebook(first, " old"), notebook(first, " new")
    uploads = [
        made.Upload(first, [("tiny.ipynb", old), ("tiny-1.ipynb", new)]),
        made.Upload(second, [("tiny-7.ipynb", notebook(second))]),
        made.Upload(third, [(f"tiny-{uuid.UUID(int=2**127)}.ipynb", notebook(third))]),
    ]
    collect(course, [made.write_zip(tmp_path / "c.zip", made.canvas_files(uploads))], "tiny")
    found = submitted(course)
    assert found[first.canvas] == {"tiny.ipynb": new, "tiny (2).ipynb": old}
    assert found[second.canvas] == {"tiny.ipynb": notebook(second)}
    assert found[third.canvas] == {"tiny.ipynb": notebook(third)}
    taken = take_in(course.submission(second.canvas, "tiny"), "tiny", tiny_course.released())
    assert taken.mends == ()


def test_a_name_that_ends_like_an_id_takes_nobody_elses_place(course, tmp_path):
    smith, carol = made.people(7)[6], made.Student(12, "Jones", "Carol")
    assert smith.last == "Smith_12"
    attacker = made.Student(3, f"Q_{carol.canvas}", "")
    uploads = [made.Upload(s, [("tiny.ipynb", notebook(s))]) for s in (smith, attacker)]
    export = made.write_zip(tmp_path / "c.zip", made.canvas_files(uploads))
    (name,) = (n for n, _ in made.canvas_files(uploads) if n.startswith("q"))
    assert name.startswith(f"q_{carol.canvas}_{attacker.canvas}_")
    # With everybody in the roster, the name tells.
    people = [smith, carol, attacker]
    report = collect(course, [export], "tiny", roster=made.roster(tmp_path / "r.csv", people))
    assert sorted(submitted(course)) == [attacker.id, smith.id]
    assert report.missing == [carol.id]
    # Without the attacker in it, nothing may go to Carol.
    roster = made.roster(tmp_path / "r.csv", [smith, carol])
    report = collect(course, [export], "tiny", roster=roster)
    (reason,) = places(report.unmatched).values()
    assert f"user {carol.canvas} or {attacker.canvas}" in reason
    # Without a roster nothing tells, whether there is a submission of her own or not.
    for others in ([], [made.Upload(carol, [("tiny.ipynb", notebook(carol))])]):
        root = tmp_path / f"other{len(others)}"
        root.mkdir()
        other = tiny_course.make_course(root)
        export = made.write_zip(tmp_path / "c2.zip", made.canvas_files([*uploads, *others]))
        report = collect(other, [export], "tiny")
        hers = {carol.canvas: {"tiny.ipynb": notebook(carol)}} if others else {}
        assert submitted(other) == hers | {smith.canvas: {"tiny.ipynb": notebook(smith)}}
        (place,) = places(report.unmatched)
        assert f"q_{carol.canvas}" in place


def test_canvas_leaves_any_numbers_in_a_name(course, tmp_path):
    """It takes ``_1_`` out of a name first, and the spaces that hid it afterwards."""
    eve = made.Student(3, "Jones", "Carol_ 40084_ 900013_x")
    upload = made.Upload(eve, [("tiny.ipynb", b"1")])
    ((name, _),) = files = made.canvas_files([upload])
    assert name.startswith("jonescarol_40084_900013_x_")
    report = collect(course, [made.write_zip(tmp_path / "c.zip", files)], "tiny")
    assert submitted(course) == {}
    assert f"user 40084 or {eve.canvas}" in report.unmatched[0]["reason"]
    # Nor does what is typed go to the user whose number is in the name.
    eve = made.Student(3, "Jones", "Carol_40084")
    files = made.canvas_files([made.Upload(eve, [], typed="<p>typed</p>")])
    report = collect(course, [made.write_zip(tmp_path / "c.zip", files)], "tiny")
    assert report.without_notebook == []
    assert "may be typed text of user 40021" in report.unmatched[0]["reason"]


def test_a_strangers_number_is_nobodys_number_of_another_platform(course, tmp_path):
    """A stranger's number in Canvas is the number of Ada, or of her address, elsewhere."""
    ada, stranger = made.Student(1, "Lovelace", "Ada"), made.Student(2, "Brown", "Bob")
    files = made.canvas_files([made.Upload(stranger, [("tiny.ipynb", b"stranger")])])
    own = made.canvas_files([made.Upload(ada, [("tiny.ipynb", b"ada")])])
    for number, (head, row) in enumerate(
        (
            (["id", "name", "sid"], ["u1", ada.name, stranger.canvas]),
            (["id", "sid"], ["u1", stranger.canvas]),
            (["sid", "email"], [stranger.canvas, ada.email]),
            (["Student ID", "name"], [stranger.canvas, ada.name]),
            (["id", "name", "username"], ["u1", ada.name, stranger.canvas]),
            (["id", "name", "lms_user_id"], [stranger.canvas, "Ada Brown", ada.canvas]),
        )
    ):
        root = tmp_path / str(number)
        root.mkdir()
        other = tiny_course.make_course(root)
        roster = made.write_table(tmp_path / "r.csv", [head, row])
        export = made.write_zip(tmp_path / "c.zip", [*files, *own])
        report = collect(other, [export], "tiny", roster=roster)
        assert all(f == {"tiny.ipynb": b"ada"} for f in submitted(other).values())
        assert "c.zip/" + files[0][0] in places(report.unmatched)


def test_a_number_and_a_part_of_the_name_are_no_proof_against_the_name(course, tmp_path):
    """Ids of the university are small numbers here, and so are those of Canvas."""
    kim, stranger = made.Student(1, "Lee", "Kim"), made.Student(2, "Lee", "Bob")
    roster = made.write_table(
        tmp_path / "r.csv", [["id", "name"], [stranger.canvas, "Lee, Kim"]]
    )
    uploads = [made.Upload(s, [("tiny.ipynb", b"1")]) for s in (kim, stranger)]
    both = made.write_zip(tmp_path / "c.zip", made.canvas_files(uploads))
    report = collect(course, [both], "tiny", roster=roster)
    assert submitted(course) == {}
    assert len(report.unmatched) == 2
    alone = made.write_zip(tmp_path / "c2.zip", made.canvas_files(uploads[1:]))
    report = collect(course, [alone], "tiny", roster=roster)
    assert report.notes == ["found by a number that no full name confirms: 40014"]


def test_chosen_names_and_files_lead_to_nobody_else(course, tmp_path):
    """What a student chooses, name or file, never makes work that of another in the class."""
    carol, eve = made.Student(12, "Jones", "Carol"), made.Student(13, "Smith", "Eve")
    dave = made.Student(14, "Miller", "Dave")
    roster = made.roster(tmp_path / "r.csv", [carol, eve, dave])
    # The same with Canvas's numbers for ids, which decide with the name alone.
    rows = [[s.canvas, s.last, s.first] for s in (carol, eve, dave)]
    bare = made.write_table(tmp_path / "b.csv", [["id", "last_name", "first_name"], *rows])
    own = f"jonescarol_{carol.canvas}_500_tiny.ipynb"
    names = [
        # nothing of the name left, and a file like Carol's
        f"_{eve.canvas}_501_x_{carol.canvas}_99999999_tiny.ipynb",
        f"_LATE_{eve.canvas}_501_x_{carol.canvas}_99999999_tiny.ipynb",
        # another name than in the roster, and a file with Carol's name
        f"nick_{eve.canvas}_501_jonescarol_{carol.canvas}_99999999_tiny.ipynb",
        # Carol's name with her number behind it, or a part of it
        f"jonescarol_{carol.canvas}_{eve.canvas}_501_tiny.ipynb",
        f"carol_{carol.canvas}_{eve.canvas}_501_tiny.ipynb",
        # the name of a third
        f"millerdave_{eve.canvas}_501_jonescarol_{carol.canvas}_99999999_tiny.ipynb",
    ]
    for number, name in enumerate(names):
        for others, people in itertools.product(([], [(own, b"1")]), (roster, bare)):
            root = tmp_path / f"{number}-{len(others)}-{people.stem}"
            root.mkdir()
            other = tiny_course.make_course(root)
            export = made.write_zip(root / "c.zip", [(name, b"2"), *others])
            report = collect(other, [export], "tiny", roster=people, platform="canvas")
            student = carol.id if people is roster else carol.canvas
            wanted = {student: {"tiny.ipynb": b"1"}} if others else {}
            assert submitted(other) == wanted
            assert list(places(report.unmatched)) == [f"c.zip/{name}"]
    # Without a roster, what can be read in two ways is nobody's.
    for number, name in enumerate(names):
        for others in ([], [(own, b"1")]):
            root = tmp_path / f"{number}-{len(others)}"
            root.mkdir()
            other = tiny_course.make_course(root)
            export = made.write_zip(root / "c.zip", [(name, b"2"), *others])
            report = collect(other, [export], "tiny", platform="canvas")
            assert submitted(other) == ({carol.canvas: {"tiny.ipynb": b"1"}} if others else {})
            (reason,) = places(report.unmatched).values()
            assert reason.startswith("it may be of user ")
            assert reason.endswith("give its gradebook as --roster")


def test_attempts_with_one_time_are_told_by_canvas_numbers(course, tmp_path):
    """The roster has one time for a student, that of the newest attempt."""
    (student,) = made.people(1)
    roster = made.roster(
        tmp_path / "r.csv", [student], submitted_at=lambda s: "2026-03-02T12:00Z"
    )
    exports = []
    for number, content in ((200, b"new"), (100, b"old")):
        upload = made.Upload(student, [("tiny.ipynb", content)], attachment=number)
        path = tmp_path / f"{number}.zip"
        exports.append(made.write_zip(path, made.canvas_files([upload])))
    collect(course, exports, "tiny", roster=roster)
    assert submitted(course) == {student.id: {"tiny.ipynb": b"new"}}


def test_anonymous_students_of_canvas_keep_their_anonymous_id(course, tmp_path):
    files = [
        ("anon_Ab3dE_901_tiny.ipynb", b"1"),
        ("LATE_anon_x9Y0z_902_tiny-1.ipynb", b"2"),
        ("smithbob_late_77_903_tiny.ipynb", b"3"),
        ("smithann_LATE_78_text.html", b"<p>typed</p>"),
        ("anon_Ty9eD_link.html", b"<p>typed</p>"),
    ]
    report = collect(course, [made.write_zip(tmp_path / "c.zip", files)], "tiny")
    assert submitted(course) == {
        "anon_Ab3dE": {"tiny.ipynb": b"1"},
        "anon_x9Y0z": {"tiny.ipynb": b"2"},
        "77": {"tiny.ipynb": b"3"},
    }
    assert report.late == ["77", "anon_x9Y0z"]
    assert report.without_notebook == ["78", "anon_Ty9eD"]
    assert report.unmatched == []
    assert "text typed into the platform" in places(report.stray).values()


def test_who_is_found_by_the_name_alone_is_said(course, tmp_path):
    students = made.people(4)
    rows = [["id", "last_name", "first_name"], *([s.id, s.last, s.first] for s in students)]
    roster = made.write_table(tmp_path / "r.csv", rows)
    uploads = [made.Upload(s, [("tiny.ipynb", notebook(s))]) for s in students]
    export = made.write_zip(tmp_path / "c.zip", made.canvas_files(uploads))
    report = collect(course, [export], "tiny", roster=roster)
    assert sorted(submitted(course)) == [s.id for s in students]
    assert report.notes == [
        "found by the name alone, since no id fits: s0001, s0002, s0003, s0004"
    ]
    # Somebody else who takes the same name in Canvas makes both doubtful.
    twin = made.Student(77, students[0].last, students[0].first)
    uploads[1:] = [made.Upload(twin, [("tiny.ipynb", b"twin")])]
    export = made.write_zip(tmp_path / "c2.zip", made.canvas_files(uploads))
    report = collect(course, [export], "tiny", roster=roster)
    assert len(report.unmatched) == 2
    assert submitted(course)["s0001"] == {"tiny.ipynb": notebook(students[0])}
    # Alone, the twin is not the user of the earlier run.
    export = made.write_zip(tmp_path / "c3.zip", made.canvas_files(uploads[1:]))
    report = collect(course, [export], "tiny", roster=roster)
    assert "only the name fits s0001" in report.unmatched[0]["reason"]
    assert submitted(course)["s0001"] == {"tiny.ipynb": notebook(students[0])}


def test_the_same_number_for_two_people_is_no_match(course, tmp_path):
    ann, bob = made.Student(1, "Adams", "Ann"), made.Student(2, "Brown", "Bob")
    export = made.write_zip(
        tmp_path / "c.zip",
        [(f"adamsann_{bob.number}_5_tiny.ipynb", b"1"), ("x_9_6_tiny.ipynb", b"")],
    )
    # The university's numbers are the ids here, and Canvas's user 2 is Ann.
    rows = [["id", "first_name", "last_name"], ["1", "Ann", "Adams"], ["2", "Bob", "Brown"]]
    roster = made.write_table(tmp_path / "r.csv", rows)
    report = collect(course, [export], "tiny", roster=roster)
    assert submitted(course) == {}
    reasons = list(places(report.unmatched).values())
    assert "2 is Brown, Bob in the roster, and adamsann here" in reasons
    assert "the roster has nobody of this id or name" in reasons
    assert report.missing == [str(ann.number), str(bob.number)]


# Moodle


def test_namesakes_are_never_one_person(course, tmp_path):
    students = made.people(11)
    kims = [s for s in students if s.name == "Kim Lee"]
    uploads = [made.Upload(s, [("tiny.ipynb", notebook(s))]) for s in students]
    alone = made.write_zip(
        tmp_path / "m1.zip", made.moodle_files([uploads[kims[0].number - 1]])
    )
    collect(course, [alone], "tiny")
    assert list(submitted(course)) == ["kim-lee"]
    # The second of the name comes later, and the first keeps the folder.
    export = made.write_zip(tmp_path / "m.zip", made.moodle_files(uploads))
    report = collect(course, [export], "tiny")
    found = submitted(course)
    assert found["kim-lee"] == {"tiny.ipynb": notebook(kims[0])}
    assert found[f"kim-lee-{kims[1].participant}"] == {"tiny.ipynb": notebook(kims[1])}
    assert any("has a namesake" in note for note in report.notes)
    assert "zoë-müller" in found
    assert len(found) == len(students)
    # By name alone, nobody can tell; by the worksheet everybody can.
    bare = made.write_table(
        tmp_path / "r.csv", [["id", "name"], *([s.id, s.name] for s in students)]
    )
    report = collect(course, [export], "tiny", roster=bare)
    reasons = places(report.unmatched)
    assert len(reasons) == 2
    assert all("2 people of this name: s0009, s0010" in r for r in reasons.values())


def test_a_name_like_a_namesakes_id_takes_nobodys_place(course, tmp_path):
    kim, namesake = made.Student(1, "Lee", "Kim"), made.Student(2, "Lee", "Kim")
    alike = made.Student(3, f"Lee {namesake.participant}", "Kim")
    uploads = [made.Upload(s, [("tiny.ipynb", notebook(s))]) for s in (kim, namesake, alike)]
    for number, chosen in enumerate(([uploads], [[uploads[2], uploads[0]], uploads])):
        root = tmp_path / str(number)
        root.mkdir()
        other = tiny_course.make_course(root)
        for day, some in enumerate(chosen):
            export = made.write_zip(root / f"{day}.zip", made.moodle_files(some))
            report = collect(other, [export], "tiny")
        found = submitted(other)
        assert all(len(files) == 1 for files in found.values())
        assert report.doubled == {}
        (reason,) = places(report.unmatched).values()
        assert f"kim-lee-{namesake.participant} would be that of user" in reason


def test_text_typed_into_moodle_is_no_notebook(course, tmp_path):
    one, two = made.people(2)
    uploads = [
        made.Upload(one, [("tiny.ipynb", b"1")], typed="<p>see file</p>"),
        made.Upload(two, [], typed="<p>{'cells': [], 'nbformat': 4}</p>"),
    ]
    export = made.write_zip(tmp_path / "m.zip", made.moodle_files(uploads))
    report = collect(course, [export], "tiny")
    assert submitted(course) == {"zoë-müller": {"tiny.ipynb": b"1"}}
    assert report.without_notebook == ["seán-obrien-lee"]


def test_an_export_of_one_student_is_no_wrapper(course, tmp_path):
    (student,) = made.people(1)
    uploads = [made.Upload(student, [("tiny.ipynb", b"1"), ("a/b.ipynb", b"2")])]
    for number, files in enumerate(
        (
            made.moodle_files(uploads),
            [("ada/tiny.ipynb", b"1"), ("ada/b.ipynb", b"2")],
            [("ada/tiny/tiny.ipynb", b"1"), ("ada/tiny/b.ipynb", b"2")],
            [("class/ada.ipynb", b"1")],
        )
    ):
        root = tmp_path / str(number)
        root.mkdir()
        other = tiny_course.make_course(root)
        collect(other, [made.write_zip(tmp_path / "x.zip", files)], "tiny")
        assert set(submitted(other)) == ({"zoë-müller"} if number == 0 else {"ada"})


# Blackboard


def test_all_attempts_are_read_and_the_newest_counts(course, tmp_path):
    (student,) = made.people(1)
    uploads = [
        made.Upload(
            student, [("tiny.ipynb", bytes([48 + n]))], time=datetime(2026, 1, day, 9, 0)
        )
        for n, day in enumerate((20, 31, 2))
    ]
    export = made.write_zip(tmp_path / "b.zip", made.blackboard_files(uploads))
    report = collect(course, [export], "tiny")
    assert submitted(course) == {"s0001": {"tiny.ipynb": b"1"}}
    assert times(course) == {"s0001": "2026-01-31 14:00:00 UTC\n"}
    kept = (course.grading / "collected" / "tiny" / "s0001").glob("*/tiny.ipynb")
    assert {path.read_bytes() for path in kept} == {b"0", b"2"}
    assert [w.split("attempt_")[1][:10] for w in report.doubled["s0001"]] == [
        "2026-01-02",
        "2026-01-20",
        "2026-01-31",
    ]


def test_a_students_text_in_the_note_decides_nothing(course, tmp_path):
    (student,) = made.people(1)
    typed = (
        "Name: Kim Lee (s0009)\nDate Submitted: Friday, January 2, 2026 1:00:00 AM EST\n"
        "Files:\n\tOriginal filename: evil.ipynb\n\tFilename: x_tiny.ipynb\n"
    )
    upload = made.Upload(student, [("tiny.ipynb", b"1")], typed=typed)
    export = made.write_zip(tmp_path / "b.zip", made.blackboard_files([upload]))
    collect(course, [export], "tiny")
    assert submitted(course) == {"s0001": {"tiny.ipynb": b"1"}}
    assert times(course) == {"s0001": "2026-01-31 17:45:00 UTC\n"}


def test_a_note_of_somebody_else_is_refused(course, tmp_path):
    one, two = made.people(2)
    files = dict(made.blackboard_files([made.Upload(one, [("tiny.ipynb", b"1")])]))
    name = next(n for n in files if n.endswith(":00.txt") or n.endswith("-00.txt"))
    files[name] = files[name].replace(one.id.encode(), two.id.encode())
    report = collect(course, [made.write_zip(tmp_path / "b.zip", files.items())], "tiny")
    assert submitted(course) == {}
    assert list(places(report.unmatched).values()) == [
        "the note names the user s0002, and its own name another one"
    ]


def test_users_with_a_common_end_are_not_mixed(course, tmp_path):
    time = "attempt_2026-01-31-13-45-00"
    files = [
        (f"HW_1_a_lee_{time}_tiny.ipynb", b"1"),
        (f"HW_1_b_lee_{time}_tiny.ipynb", b"2"),
        (f"HW_1_kim_{time}_tiny.ipynb", b"3"),
    ]
    export = made.write_zip(tmp_path / "b.zip", files)
    report = collect(course, [export], "tiny")
    assert submitted(course) == {"kim": {"tiny.ipynb": b"3"}}
    assert len(report.unmatched) == 2
    roster = made.write_table(tmp_path / "r.csv", [["id"], ["a_lee"], ["b_lee"], ["kim"]])
    collect(course, [export], "tiny", roster=roster)
    assert {s: f["tiny.ipynb"] for s, f in submitted(course).items()} == {
        "a_lee": b"1",
        "b_lee": b"2",
        "kim": b"3",
    }


def test_a_file_that_blackboard_renamed_has_its_name_from_the_note(course, tmp_path):
    (student,) = made.people(1)
    files = made.blackboard_files([made.Upload(student, [("tiny.ipynb", b"1")])])
    (note, text), (name, content) = files
    text = text.replace(f"\tFilename: {name}".encode(), f"\tFilename: {name[:-6]}".encode())
    files = [(note, text), (name[:-6], content)]
    collect(course, [made.write_zip(tmp_path / "b.zip", files)], "tiny")
    assert submitted(course) == {"s0001": {"tiny.ipynb": b"1"}}


# Gradescope


def test_a_roster_without_the_platforms_number_knows_the_address(course, tmp_path):
    students = made.people(12)
    rows = [["id", "name", "email"], *([f"u{s.number}", s.name, s.email] for s in students)]
    roster = made.write_table(tmp_path / "r.csv", rows)
    uploads = [made.Upload(s, [("tiny.ipynb", notebook(s))]) for s in students]
    files = made.gradescope_files([[u] for u in uploads])
    report = collect(course, [made.write_zip(tmp_path / "g.zip", files)], "tiny", roster=roster)
    assert submitted(course) == {
        f"u{s.number}": {"tiny.ipynb": notebook(s)}
        for s in students  # namesakes too
    }
    assert report.missing == report.unmatched == []


def test_one_number_of_two_accounts_is_not_one_student(course, tmp_path):
    first, second = made.people(2)
    uploads = [made.Upload(s, [("tiny.ipynb", notebook(s))]) for s in (first, second)]
    files = made.gradescope_files([[u] for u in uploads])
    about = files[0][1].replace(second.id.encode() + b"'", first.id.encode() + b"'")
    export = made.write_zip(tmp_path / "g.zip", [(files[0][0], about), *files[1:]])
    report = collect(course, [export], "tiny")
    assert submitted(course) == {first.id: {"tiny.ipynb": notebook(first)}}
    (reason,) = places(report.unmatched).values()
    assert reason.startswith(
        f"the id {first.id} would be that of user {first.id} or {first.email}"
    )


@pytest.mark.parametrize("roster", [False, True])
def test_a_name_is_no_number_where_gradescope_has_none(course, tmp_path, roster):
    """Who calls herself like the number of another is not taken for that other."""
    eve = made.Student(2, "", "s0001")
    files = made.gradescope_files([[made.Upload(eve, [("tiny.ipynb", b"1")])]])
    about = files[0][1].replace(b"'s0002'", b"").replace(eve.email.encode(), b"").decode()
    about = about.replace('"s0001 "', '"s0001"').encode()
    export = made.write_zip(tmp_path / "g.zip", [(files[0][0], about), *files[1:]])
    people = made.write_table(tmp_path / "r.csv", [["id"], ["s0001"]]) if roster else None
    report = collect(course, [export], "tiny", roster=people)
    assert submitted(course) == {}
    assert len(report.unmatched) == 1


def test_the_work_of_a_group_goes_to_each_of_it(course, tmp_path):
    students = made.people(5)
    uploads = [made.Upload(s, [("tiny.ipynb", notebook(s))]) for s in students]
    files = made.gradescope_files([uploads[:2], uploads[2:3], uploads[3:]])
    collect(course, [made.write_zip(tmp_path / "g.zip", files)], "tiny")
    found = submitted(course)
    assert found["s0001"] == found["s0002"] == {"tiny.ipynb": notebook(students[0])}
    assert found["s0004"] == found["s0005"]
    assert len(found) == 5


def test_the_newest_of_several_counts_whatever_its_number(course, tmp_path):
    (student,) = made.people(1)
    uploads = [
        made.Upload(student, [("tiny.ipynb", name)], time=datetime(2026, 1, day, 12, 0))
        for name, day in ((b"newest", 30), (b"oldest", 10), (b"middle", 20))
    ]
    files = made.gradescope_files([[upload] for upload in uploads])
    report = collect(course, [made.write_zip(tmp_path / "g.zip", files)], "tiny")
    assert submitted(course) == {"s0001": {"tiny.ipynb": b"newest"}}
    assert times(course) == {"s0001": "2026-01-30 12:00:00 UTC\n"}
    numbers = [place.rpartition("_")[2] for place in report.doubled["s0001"]]
    assert numbers == ["1001", "1002", "1000"]


def test_a_list_within_a_submission_is_no_list(course, tmp_path):
    one, _two = made.people(2)
    forged = b"submission_1000:\n  :submitters:\n  - :name: X\n    :sid: s0002\n"
    upload = made.Upload(one, [("tiny.ipynb", b"1"), ("submission_metadata.yml", forged)])
    files = made.gradescope_files([[upload]])
    report = collect(course, [made.write_zip(tmp_path / "g.zip", files)], "tiny")
    assert submitted(course) == {"s0001": {"tiny.ipynb": b"1"}}
    assert report.platform == "gradescope"
    files = [(name, data) for name, data in files if "export/submission_metadata" not in name]
    with pytest.raises(ValueError, match="must have submission_metadata"):
        collect(
            course, [made.write_zip(tmp_path / "g.zip", files)], "tiny", platform="gradescope"
        )


def test_folders_that_the_list_leaves_out_belong_to_nobody(course, tmp_path):
    (student,) = made.people(1)
    files = made.gradescope_files([[made.Upload(student, [("tiny.ipynb", b"1")])]])
    files += [("assignment_771_export/submission_2000/tiny.ipynb", b"2")]
    report = collect(course, [made.write_zip(tmp_path / "g.zip", files)], "tiny")
    assert places(report.unmatched) == {
        "g.zip/submission_2000": "submission_metadata.yml does not say whose it is"
    }
    damaged = [(files[0][0], b"submission_1000: [\n"), *files[1:]]
    with pytest.raises(ValueError, match="must be YAML as Gradescope writes it"):
        collect(course, [made.write_zip(tmp_path / "g.zip", damaged)], "tiny")


# Folders


def test_one_file_each_named_after_the_student(course, tmp_path):
    files = [
        ("ada.ipynb", b"1"),
        ("ben_tiny.ipynb", b"2"),
        ("Tiny - cem.ipynb", b"3"),
        ("dee.zip", made.zipped([("x/tiny.ipynb", b"4")])),
        ("e e.ipynb", b"5"),
        ("-rf.ipynb", b"6"),
        ("f[1].ipynb", b"7"),
    ]
    report = collect(course, [made.write_zip(tmp_path / "all.zip", files)], "tiny")
    assert {s: next(iter(f.values())) for s, f in submitted(course).items()} == {
        "ada": b"1",
        "ben": b"2",
        "cem": b"3",
        "dee": b"4",
    }
    assert set(places(report.unmatched)) == {
        "all.zip/e e.ipynb",
        "all.zip/-rf.ipynb",
        "all.zip/f[1].ipynb",
    }


@pytest.mark.parametrize(
    ("names", "found", "doubtful"),
    [
        (["ada_tiny-1.ipynb"], {}, ["ada_tiny-1.ipynb"]),
        (["ada_tiny.ipynb", "ada_tiny-1.ipynb"], {"ada"}, ["ada_tiny-1.ipynb"]),
        (["ada_tiny_final.ipynb"], {}, ["ada_tiny_final.ipynb"]),
        (["ada_tiny (2).ipynb"], {}, ["ada_tiny (2).ipynb"]),
        (["ada.ipynb", "ada-1.ipynb"], {"ada"}, ["ada-1.ipynb"]),
        (["ada.ipynb", "ada-copy1.ipynb"], {"ada"}, ["ada-copy1.ipynb"]),
        (["ada.ipynb", "ADA-Copy1.ipynb"], {"ada"}, ["ADA-Copy1.ipynb"]),
        (["ada/tiny.ipynb", "tiny_ada-1.ipynb"], {"ada"}, ["tiny_ada-1.ipynb"]),
        (["team-1.ipynb", "team-2.ipynb"], {"team-1", "team-2"}, []),
        (["team-1/tiny.ipynb", "team/tiny.ipynb"], {"team", "team-1"}, []),
        (["tiny_team-1.ipynb", "TINY team-2.ipynb"], {"team-1", "team-2"}, []),
        (["tiny.ipynb", "tiny-1.ipynb"], {"all"}, ["tiny-1.ipynb"]),
        (["tiny_1.ipynb", "tiny_2.ipynb"], {"1", "2"}, []),
        (["shiny.ipynb", "tiny2.ipynb"], {"shiny", "tiny2"}, []),
    ],
)
def test_a_number_at_the_end_of_a_file_is_not_guessed_at(
    course, tmp_path, names, found, doubtful
):
    """It is the mark of a second file with one program, and part of a name with another."""
    files = [(name, str(place).encode()) for place, name in enumerate(names)]
    export = made.write_zip(tmp_path / "all.zip", files)
    report = collect(course, [export], "tiny", platform="generic")
    assert set(submitted(course)) == set(found)
    assert list(places(report.unmatched)) == [f"all.zip/{name}" for name in doubtful]


def test_a_roster_says_what_a_number_at_the_end_of_a_file_is(course, tmp_path):
    files = [("ada_tiny.ipynb", b"1"), ("ada_tiny-1.ipynb", b"2"), ("s-1.ipynb", b"3")]
    export = made.write_zip(tmp_path / "all.zip", files)
    rows = [["id"], ["ada"], ["s-1"]]
    roster = made.write_table(tmp_path / "r.csv", rows)
    report = collect(course, [export], "tiny", roster=roster)
    found = {s: list(f.values()) for s, f in submitted(course).items()}
    assert found == {"ada": [b"2"], "s-1": [b"3"]}
    assert report.doubled == {"ada": ["all.zip/ada_tiny.ipynb", "all.zip/ada_tiny-1.ipynb"]}
    # With both in the class, it is not told.
    roster = made.write_table(tmp_path / "r.csv", [*rows, ["ada_tiny-1"], ["s"]])
    root = tmp_path / "other"
    root.mkdir()
    other = tiny_course.make_course(root)
    report = collect(other, [export], "tiny", roster=roster)
    assert {s: list(f.values()) for s, f in submitted(other).items()} == {"ada": [b"1"]}
    assert {r.split(";")[0] for r in places(report.unmatched).values()} == {
        "it may be of ada or ada_tiny-1",
        "it may be of s-1 or s",
    }


@pytest.mark.parametrize("roster", [False, True])
@pytest.mark.parametrize("unpacked", [False, True])
def test_two_names_that_look_the_same_are_not_mixed(course, tmp_path, unpacked, roster):
    zoe = unicodedata.normalize("NFC", "zoë")
    files = [(f"{zoe}/tiny.ipynb", b"1"), (f"{made.decomposed(zoe)}/tiny.ipynb", b"2")]
    files += [("ada/tiny.ipynb", b"3"), (f"ada/{zoe}.ipynb", b"3")]
    export = made.write_zip(tmp_path / ("all" if unpacked else "all.zip"), files)
    if unpacked and len(list(export.iterdir())) < 3:
        pytest.skip("this file system has one name for both")
    people = made.write_table(tmp_path / "r.csv", [["id"], [zoe], ["ada"]]) if roster else None
    report = collect(course, [export], "tiny", roster=people)
    assert list(submitted(course)) == ["ada"]
    assert all(
        "is written in 2 ways that look the same" in reason
        for reason in places(report.unmatched).values()
    )
    assert report.unmatched
    assert not report.complete


def test_an_archive_of_one_student_is_named_after_the_student(course, tmp_path):
    one = made.write_zip(tmp_path / "ada.zip", [("tiny.ipynb", b"1")])
    two = made.write_zip(tmp_path / "ben.zip", [("tiny.ipynb", b"2")])
    collect(course, [one, two], "tiny")
    assert submitted(course) == {"ada": {"tiny.ipynb": b"1"}, "ben": {"tiny.ipynb": b"2"}}


def test_ids_that_differ_by_case_alone_are_not_mixed(course, tmp_path):
    export = made.write_zip(
        tmp_path / "all.zip", [("Ada/tiny.ipynb", b"1"), ("ada/tiny.ipynb", b"2")]
    )
    report = collect(course, [export], "tiny")
    assert submitted(course) == {"Ada": {"tiny.ipynb": b"1"}}
    assert "differs from Ada by nothing but case" in report.unmatched[0]["reason"]


def test_both_forms_of_an_accent_are_one_student(course, tmp_path):
    rows = [["id", "name"], ["zoë", "Zoë Müller"]]
    roster = made.write_table(tmp_path / "r.csv", rows)
    export = made.write_zip(
        tmp_path / "all.zip", [(made.decomposed("zoë/tiny.ipynb"), b"1"), ("x/tiny.ipynb", b"")]
    )
    report = collect(course, [export], "tiny", roster=roster)
    (student,) = submitted(course)
    assert student == unicodedata.normalize("NFC", "zoë")
    assert report.missing == []


def test_a_folder_with_an_export_in_it_is_no_export(course, tmp_path):
    uploads = [made.Upload(s, [("tiny.ipynb", notebook(s))]) for s in made.people(3)]
    folder = tmp_path / "downloads"
    folder.mkdir()
    for name, files in (
        ("submissions.zip", made.canvas_files(uploads)),
        ("b.zip", made.blackboard_files(uploads)),
        ("m.zip", made.moodle_files(uploads)),
    ):
        made.write_zip(folder / name, files)
    report = collect(course, [folder], "tiny")
    assert submitted(course) == {}
    assert sorted(reason.split(";")[0] for reason in places(report.refused).values()) == [
        "it is like an export of blackboard",
        "it is like an export of canvas",
        "it is like an export of moodle",
    ]


# Exports together


@pytest.mark.parametrize("turned", [False, True])
def test_exports_of_two_days_are_joined_in_either_order(course, tmp_path, turned):
    one, two, three = made.people(3)
    days = [
        [
            made.Upload(one, [("tiny.ipynb", b"1 old")], attachment=10),
            made.Upload(two, [("tiny.ipynb", b"2")], attachment=11),
        ],
        [
            made.Upload(one, [("tiny-1.ipynb", b"1 new")], attachment=20, late=True),
            made.Upload(two, [("tiny.ipynb", b"2")], attachment=11),
            made.Upload(three, [("tiny.ipynb", b"3")], attachment=21),
        ],
    ]
    exports = [
        made.write_zip(tmp_path / f"day{n}.zip", made.canvas_files(day))
        for n, day in enumerate(days)
    ]
    report = collect(course, exports[:: -1 if turned else 1], "tiny")
    found = {s: files["tiny.ipynb"] for s, files in submitted(course).items()}
    assert found == {one.canvas: b"1 new", two.canvas: b"2", three.canvas: b"3"}
    assert report.late == [one.canvas]
    assert [place[:8] for place in report.doubled.pop(one.canvas)] == ["day0.zip", "day1.zip"]
    assert report.doubled == {}


def test_exports_of_two_platforms_are_not_mixed(course, tmp_path):
    (student,) = made.people(1)
    uploads = [made.Upload(student, [("tiny.ipynb", b"1")])]
    canvas = made.write_zip(tmp_path / "c.zip", made.canvas_files(uploads))
    moodle = made.write_zip(tmp_path / "m.zip", made.moodle_files(uploads))
    with pytest.raises(
        ValueError, match=r"one platform, got c.zip \(canvas\), m.zip \(moodle\)"
    ):
        collect(course, [canvas, moodle], "tiny")
    assert not (course.grading / "submitted").exists()


def test_an_export_given_twice_is_no_second_submission(course, tmp_path):
    (student,) = made.people(1)
    files = made.canvas_files([made.Upload(student, [("tiny.ipynb", b"1")])])
    one = made.write_zip(tmp_path / "c.zip", files)
    two = made.write_zip(tmp_path / "c (1).zip", files)
    report = collect(course, [one, one, two], "tiny")
    assert report.doubled == {}
    assert report.collected == [student.canvas]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"platform": "sakai"}, "platform must be auto or one of .*, got 'sakai'"),
        ({"timezone": "Mars/Olympus"}, "timezone must be a name such as Europe/Berlin"),
        ({"roster": "/nowhere.csv"}, "roster must be a file, got /nowhere.csv"),
    ],
)
def test_wrong_options_are_named(course, tmp_path, options, message):
    export = made.write_zip(tmp_path / "c.zip", [("ada/tiny.ipynb", b"1")])
    with pytest.raises(ValueError, match=message):
        collect(course, [export], "tiny", **options)
    assert not course.grading.joinpath("submitted").exists()


def test_the_assignment_must_have_been_released(course, tmp_path):
    export = made.write_zip(tmp_path / "c.zip", [("ada/tiny.ipynb", b"1")])
    with pytest.raises(ValueError, match="assignment must be released"):
        collect(course, [export], "other")


# The command


def test_the_command_reports_in_words_and_in_json(course, tmp_path):
    students, uploads, expected = odd_class()
    export = str(FORMS["canvas"](tmp_path, uploads))
    roster = str(made.roster(tmp_path / "r.csv", students))
    command = ("collect", export, "--assignment", "tiny", "--roster", roster)
    said = run(course, *command, code=cli.NOT_GRADED)
    assert "tiny, from canvas: 58 new" in said
    assert "Missing (1): s0060" in said
    assert "Handed in something, but no notebook (1): s0059" in said
    found = json.loads(run(course, *command, "--json", code=cli.NOT_GRADED))
    assert found["unchanged"] == sorted(expected)
    assert found["missing"] == ["s0060"]
    assert found["complete"] is False


def test_the_command_ends_well_if_everything_has_its_place(course, tmp_path):
    export = made.write_zip(tmp_path / "c.zip", [("ada/tiny.ipynb", b"1")])
    assert "1 new" in run(course, "collect", str(export), "--assignment", "tiny")
    assert "assignment must be released" in run(
        course, "collect", str(export), "--assignment", "x", code=1
    )
    assert "got /nowhere, which is none" in run(
        course, "collect", "/nowhere", "--assignment", "tiny", code=1
    )


def test_the_report_moves_no_cursor(course, tmp_path):
    export = made.write_zip(tmp_path / "c.zip", [("\x1b[2J/tiny.ipynb", b"1")])
    report = collect(course, [export], "tiny")
    assert report.unmatched
    assert "\x1b" not in "\n".join(report_lines(report))


# What is collected is graded


def test_collected_work_is_graded_with_its_time(course, tmp_path, monkeypatch):
    import functools

    from seqlib.grading.batch import grade_class
    from seqlib.grading.gradebook.writer import open_gradebook

    tiny_course.register(monkeypatch)
    register(course, "tiny")
    students = made.people(3)
    uploads = [made.Upload(s, [("tiny.ipynb", notebook(s))]) for s in students]
    export = made.write_zip(tmp_path / "g.zip", made.gradescope_files([[u] for u in uploads]))
    collect(course, [export], "tiny")
    make = functools.partial(tiny_course.tiny_grader, course.root)
    outcome = grade_class(course, "tiny", workers=1, trust_students=True, make_grader=make)
    assert {s: r["score"] for s, r in outcome.records.items()} == dict.fromkeys(
        ("s0001", "s0002", "s0003"), 80.0
    )
    assert {r["state"] for r in outcome.records.values()} == {"graded"}
    with open_gradebook(course) as gradebook:
        found = gradebook.assignment_submissions("tiny")
        assert {s.timestamp for s in found} == {datetime(2026, 1, 31, 12, 45)}
