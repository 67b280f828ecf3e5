"""Rosters of every platform, names in every form, and times of every zone."""

from datetime import UTC, datetime, timedelta

import exports_made as made
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqlib.grading.collect import names
from seqlib.grading.collect.names import (
    checked_id,
    folded,
    related,
    safe_file_name,
    shown,
    slug,
    squeezed,
)
from seqlib.grading.collect.platforms import PLATFORMS
from seqlib.grading.collect.roster import read_roster
from seqlib.grading.collect.times import find_zone, read_time


def table(tmp_path, rows, **options):
    return made.write_table(tmp_path / "roster.csv", rows, **options)


def ids(roster):
    return [person.id for person in roster.people]


# Forms


def test_each_platforms_own_table_is_a_roster(tmp_path):
    students = made.people(10)
    canvas = read_roster(made.canvas_gradebook(tmp_path / "g.csv", students))
    assert ids(canvas) == [s.canvas for s in students]
    assert canvas.find("canvas", students[0].canvas, "")[1] == "key"
    assert canvas.find("canvas", "99999", "")[0] is None  # Canvas's student for tests
    uploads = [made.Upload(students[0], [])]
    moodle = read_roster(made.moodle_worksheet(tmp_path / "w.csv", students, uploads))
    assert ids(moodle) == [s.id for s in students]
    person, how = moodle.find("moodle", students[1].participant, "")
    assert (person.id, person.time, how) == (students[1].id, "", "key")
    assert moodle.people[0].time == "Saturday, 31 January 2026, 12:45 PM"
    bare = made.moodle_worksheet(tmp_path / "w.csv", students, uploads, numbers=False)
    assert ids(read_roster(bare)) == [s.email for s in students]
    assert ids(read_roster(made.roster(tmp_path / "r.csv", students))) == [
        s.id for s in students
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_tables_of_spreadsheets_are_read(tmp_path, delimiter, encoding):
    rows = [
        ["Last Name", "First Name", "Username", "Student ID", "Last Access"],
        ["Müller, geb. Weiß", "Zoë", "zoe", "77", ""],
        ["", "", "", "", ""],
        ["O'Brien", 'Se"án', "sean", "78", ""],
    ]
    path = table(tmp_path, rows, delimiter=delimiter, encoding=encoding)
    roster = read_roster(path)
    assert ids(roster) == ["zoe", "sean"]
    assert roster.people[0].name == "Müller, geb. Weiß, Zoë"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "must have a line for each student, got none"),
        ([["id"]], "must have a line for each student, got none"),
        (
            [["colour"], ["red"]],
            "must have a column id, filled in every line.* got the columns col",
        ),
        ([["id"], ["a"], ["A"]], "must have each id once, got A in lines 2 and 3"),
        ([["id"], ["../x"]], r"id in line 2 of the roster must consist of .* got '\.\./x'"),
        ([["id", "id"], ["a", "b"]], "must have the column id once"),
        ([["id"], ["a" * 101]], "must consist of at most 100 letters"),
        ([["id"], ["a", " "], ["b", "x"]], "at most 1 cells in a line.* got 2 in line 3"),
    ],
)
def test_what_is_wrong_with_a_roster_is_said(tmp_path, rows, message):
    with pytest.raises(ValueError, match=message):
        read_roster(table(tmp_path, rows))


def test_a_roster_in_an_old_encoding_is_named(tmp_path):
    path = tmp_path / "roster.csv"
    path.write_bytes("id,name\na,Zoë\n".encode("latin-1"))
    with pytest.raises(
        ValueError, match=r"must be in UTF-8 or UTF-16, got .* with byte 0xeb at 12"
    ):
        read_roster(path)
    path.write_bytes(b'id,name\na,"open\n')
    with pytest.raises(ValueError, match="must be a table in CSV"):
        read_roster(path)


# Matching


def test_people_are_found_by_key_then_id_then_name(tmp_path):
    rows = [
        ["id", "last_name", "first_name", "email", "lms_user_id"],
        ["a1", "Lovelace", "Ada", "ada@x.edu", "11"],
        ["b2", "Brown", "Bob", "", "12"],
        ["c3", "Brown", "Bob", "", "12"],
        ["11", "Other", "Eve", "", ""],
    ]
    roster = read_roster(table(tmp_path, rows))

    def find(key, name, platform="canvas"):
        return roster.find(platform, key, name)

    assert find("11", "x")[0].id == "a1"  # the platform's number before an id
    assert find("ADA@x.edu", "", "gradescope")[0].id == "a1"
    assert find("A1", "Ada Byron Lovelace", "generic")[0].id == "a1"
    assert find("?", "Ada  LOVELACE")[0].id == "a1"
    assert find("?", "lovelaceada")[0].id == "a1"
    assert find("12", "") == (None, "the roster has 12 more than once: b2, c3")
    assert find("?", "Bob Brown")[1] == "the roster has 2 people of this name: b2, c3"
    assert find("a1", "Carol Jones", "generic")[0] is None
    # Somebody else's name: the numbers are those of another table.
    assert "is Lovelace, Ada in the roster" in find("11", "Brown, Bob")[1]
    assert roster.knows("canvas", "11")
    assert roster.knows("generic", "B2")
    assert not roster.knows("canvas", "?")
    assert find("", "") == (None, "the roster has nobody of this id or name")


@pytest.mark.parametrize(
    ("column", "platforms"),
    [
        ("lms_user_id", {"canvas", "moodle", "blackboard", "generic"}),
        ("sid", {"gradescope", "generic"}),
        ("Student ID", {"gradescope", "generic"}),
        ("SIS User ID", {"gradescope", "generic"}),
        ("Username", {"blackboard", "generic"}),
        ("E-Mail", {"gradescope", "generic"}),
    ],
)
def test_a_number_counts_in_the_columns_of_its_own_platform_alone(tmp_path, column, platforms):
    """With an id beside it, and as the only column of ids."""
    for head, row in (
        (["id", "name", column], ["ada", "Ada", "4711"]),
        (["name", column], ["Ada", "4711"]),
    ):
        if column in ("lms_user_id", "E-Mail") and "id" not in head:
            continue  # neither can be the only one
        roster = read_roster(table(tmp_path, [head, row]))
        found = {p for p in PLATFORMS if roster.find(p, "4711", "")[0] is not None}
        # What is the id may be what a site without numbers of its own calls its users.
        more = set() if "id" in head else {"blackboard", "gradescope"}
        assert found == platforms | more


def test_lines_are_those_of_the_file(tmp_path):
    text = '\n\nid,name\n"a1","Lovelace,\nAda"\n\n  ,\nb2,Bob\r\nB2,"two\n\nlines"\n'
    path = tmp_path / "r.csv"
    for bom in (b"", b"\xef\xbb\xbf"):
        path.write_bytes(bom + text.encode())
        with pytest.raises(ValueError, match=r"got B2 in lines 8 and 9"):
            read_roster(path)
        path.write_bytes(bom + text.replace("B2", "../x").encode())
        with pytest.raises(ValueError, match=r"id in line 9 of the roster must consist"):
            read_roster(path)
        path.write_bytes(bom + text.replace('lines"', "lines").encode())
        with pytest.raises(ValueError, match=r"line 9 must be CSV: unexpected end"):
            read_roster(path)
    canvas = [
        "Student,ID,SIS User ID,Tiny (7)",
        "    Points Possible,,,100",
        '"A, B",1,x,',
        '"Student, Test",9,,',
        '"C, D",1,y,',
    ]
    path.write_text("\n".join(canvas))
    with pytest.raises(ValueError, match=r"got 1 in lines 3 and 5"):
        read_roster(path)


@pytest.mark.parametrize(
    ("full", "platform", "expected"),
    [
        ("Lovelace, Ada", "lovelaceada", True),
        ("Lovelace, Ada", "Ada King", True),
        ("Lovelace, Ada", "Bob Brown", False),
        ("李, 小龍", "小龍 李", True),
        ("Müller, Zoë", made.decomposed("müllerzoë"), True),
        ("", "anyone", True),
        ("A, B", "xyz", True),  # initials alone tell nothing
    ],
)
def test_names_that_share_a_part_are_related(full, platform, expected):
    assert related(full, platform) is expected


# Names


@given(st.text(max_size=300))
def test_a_safe_file_name_is_safe_whatever_comes(text):
    name = safe_file_name(text)
    assert 0 < len(name) <= 121
    assert not set(name) & set('<>:"/\\|?*\0\n')
    assert name not in (".", "..")
    assert name.split(".")[0].lower() not in ("con", "nul", "com1")
    name.encode("utf-8")


@given(st.text(max_size=300))
def test_what_is_shown_moves_no_cursor(text):
    assert shown(text).isprintable()
    assert len(shown(text)) <= 203


@given(st.text(max_size=120))
def test_an_id_is_one_folder_or_an_error(text):
    try:
        name = checked_id(text)
    except ValueError:
        return
    assert not set(name) & set("/\\*?[]{}:\0\n ")
    assert not name.startswith((".", "-"))
    assert 0 < len(name) <= names.MAX_ID


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
def test_both_forms_of_an_accent_compare_equal(text):
    assert folded(made.decomposed(text)) == folded(folded(text))
    assert squeezed(made.decomposed(text)) == squeezed(text)
    assert slug(made.decomposed(text)) == slug(text)


# Times


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2026-01-31 13:45:00.123456000 Z", None, "2026-01-31 13:45"),
        ("2026-01-31 13:45:00.123456000 -08:00", "UTC", "2026-01-31 21:45"),
        ("2026-01-31T13:45:00+01:00", None, "2026-01-31 12:45"),
        ("Saturday, January 31, 2026 1:45:00 PM EST", None, "2026-01-31 18:45"),
        ("Saturday, January 31, 2026 1:45:00 PM EST", "Europe/Berlin", "2026-01-31 18:45"),
        ("Saturday, 31 January 2026 13:45:00 o'clock GMT", "Europe/Paris", "2026-01-31 13:45"),
        # China and the middle of America share the letters; the zone decides.
        ("Saturday, January 31, 2026 1:45:00 PM CST", None, "2026-01-31 19:45"),
        ("Saturday, January 31, 2026 1:45:00 PM CST", "Asia/Shanghai", "2026-01-31 05:45"),
        ("Wednesday, 10 June 2026, 2:14 PM", "Europe/Berlin", "2026-06-10 12:14"),
        ("Wednesday, September 23, 2020, 9:00 PM", "America/New_York", "2020-09-24 01:00"),
        ("2026-01-31-13-45-00", "Asia/Kathmandu", "2026-01-31 08:00"),
        # The hour that exists twice, told apart by its abbreviation alone.
        ("Sunday, November 1, 2026 1:30:00 AM EDT", "America/New_York", "2026-11-01 05:30"),
        ("Sunday, November 1, 2026 1:30:00 AM EST", "America/New_York", "2026-11-01 06:30"),
        ("2026-11-01-01-30-00", "America/New_York", "2026-11-01 05:30"),
    ],
)
def test_times_of_every_platform(text, zone, expected):
    time, assumed = read_time(text, zone and find_zone(zone))
    assert f"{time:%Y-%m-%d %H:%M}" == expected
    assert time.utcoffset() == timedelta(0)
    assert not assumed


def test_a_time_without_a_zone_is_taken_as_utc_and_said_to_be():
    expected = (datetime(2026, 1, 31, 13, 45, tzinfo=UTC), True)
    assert read_time("2026-01-31-13-45-00") == expected
    assert read_time("Saturday, January 31, 2026 1:45:00 PM IST") == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "yesterday",
        "31.01.2026 13:45",
        "01/02/2026",
        "Mittwoch, 10. Juni 2026, 14:14",
        "0001-01-01T00:00:00+14:00",
        "2026-02-30-00-00-00",
        "9" * 50,
    ],
)
def test_what_is_no_time_is_none(text):
    assert read_time(text) == (None, False)


@given(st.text(max_size=60))
def test_no_text_breaks_the_reader_of_times(text):
    time, _ = read_time(text, find_zone("Europe/Berlin"))
    assert time is None or time.tzinfo is UTC
