"""Exports as the platforms make them, for tests: names, notes and lists in their forms.

Written from the platforms' sources and from what their users' programs read; it shares no code
with ``seqlib.grading.collect``.
"""

import csv
import io
import re
import stat
import struct
import unicodedata
import zipfile
from dataclasses import dataclass, field
from datetime import datetime

# Names that exports have mangled, last and first.
HARD = [
    ("Müller", "Zoë"),
    ("O'Brien-Lee", "Seán"),
    ("van der Berg", "Anne Marie"),
    ("李", "小龍"),
    ("Şahin", "İpek"),
    ("Nguyễn", "Thị Ánh"),
    ("Smith_12", "Bob"),
    ("Łukasz-Żak", "Ewa"),
]


NOTHING_TYPED = "There is no student submission text data for this assignment."


@dataclass
class Student:
    """One of a class, under all names that the platforms have for them."""

    number: int
    last: str
    first: str

    @property
    def id(self):
        return f"s{self.number:04d}"

    @property
    def canvas(self):
        return str(40_000 + 7 * self.number)

    @property
    def participant(self):
        return str(1_230_000 + 11 * self.number)

    @property
    def email(self):
        return f"{self.id}@example.edu"

    @property
    def name(self):
        return f"{self.first} {self.last}"


@dataclass
class Upload:
    """What a student handed in: files as ``(name, content)`` in the order of the upload."""

    student: Student
    files: list
    time: datetime = datetime(2026, 1, 31, 12, 45)
    late: bool = False
    attachment: int = 0
    typed: str = ""
    options: dict = field(default_factory=dict)


def people(count):
    """Return a class: hard names first, then two namesakes, then plain ones."""
    names = [*HARD, ("Lee", "Kim"), ("Lee", "Kim")]
    names += [(f"Last{n // 26}{chr(97 + n % 26)}", f"First{n}") for n in range(count)]
    return [Student(n + 1, last, first) for n, (last, first) in enumerate(names[:count])]


# Zip archives


class Unmarked(zipfile.ZipInfo):
    """An entry whose name is UTF-8 without the mark that says so, as from Canvas or a Mac."""

    def _encodeFilenameFlags(self):
        return self.filename.encode("utf-8"), self.flag_bits & ~0x800


def entry(name, *, marked=True, mode=stat.S_IFREG | 0o644, when=(2020, 2, 29, 12, 0, 0)):
    """Return an entry; its time is one that a student's clock might have shown."""
    info = (zipfile.ZipInfo if marked else Unmarked)(name, when)
    info.external_attr = mode << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def zipped(files, **options):
    """Return the bytes of an archive of ``(name or entry, content)``."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            info = name if isinstance(name, zipfile.ZipInfo) else entry(name, **options)
            archive.writestr(info, content)
    return data.getvalue()


def write_zip(path, files, **options):
    """Write an archive, or a folder if the path does not end in ``.zip``."""
    if path.suffix == ".zip":
        path.write_bytes(zipped(files, **options))
        return path
    for name, content in files:
        target = path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return path


def read_zip(path):
    """Return ``(name, content)`` of an archive, with the names that its maker meant."""
    with zipfile.ZipFile(path) as archive:
        return [
            (
                info.filename
                if info.flag_bits & 0x800
                else info.filename.encode("cp437").decode("utf-8"),
                archive.read(info),
            )
            for info in archive.infolist()
        ]


def encrypted(data, name):
    """Return an archive with the mark on one entry that says it is encrypted."""
    at = data.index(name.encode(), data.index(b"PK\x01\x02"))
    central = data.rindex(b"PK\x01\x02", 0, at)
    changed = bytearray(data)
    for offset in (central + 8, data.index(b"PK\x03\x04") + 6):
        flags = struct.unpack_from("<H", changed, offset)[0]
        struct.pack_into("<H", changed, offset, flags | 1)
    return bytes(changed)


def decomposed(text):
    """Return a name as a Mac writes it."""
    return unicodedata.normalize("NFD", text)


# Canvas


def canvas_name(upload, name, attachment):
    """Return the name of a file in Canvas's archive."""
    student = upload.student
    person = re.sub(r"_(\d+)_", r"\1", f"{student.last}, {student.first}").lower()
    parts = [person, *(["LATE"] if upload.late else []), student.canvas]
    # [[:word:]] of Ruby: letters, marks, digits and the underscore.
    whole = "".join(
        c for c in "_".join(parts) if c == "_" or unicodedata.category(c)[0] in "LMN"
    )
    return f"{whole}_{attachment}_{name}"


def canvas_files(uploads):
    """Return the entries of Canvas's "Download Submissions"."""
    files, taken = [], 900_000
    for upload in uploads:
        if upload.typed:
            first = canvas_name(upload, "", "")[:-2]
            files.append((f"{first}_text.html", upload.typed.encode()))
        for offset, (name, content) in enumerate(upload.files):
            number = upload.attachment + offset if upload.attachment else (taken := taken + 13)
            files.append((canvas_name(upload, name, number), content))
    return files


def canvas_gradebook(path, students, column="Tiny (771)"):
    """Write the gradebook as Canvas exports it."""
    rows = [["Student", "ID", "SIS User ID", "SIS Login ID", "Section", column]]
    rows.append(["    Points Possible", "", "", "", "", "100"])
    rows += [
        [f"{s.last}, {s.first}", s.canvas, f"U{s.number}", s.email, "A", ""] for s in students
    ]
    rows.append(["Student, Test", "99999", "", "f3b2", "A", ""])
    return write_table(path, rows)


# Moodle


def moodle_files(uploads, *, folders=True, end=""):
    """Return the entries of Moodle's "Download all submissions"; older ones end in ``_``."""
    files, joint = [], f"{end}/" if folders else "_"
    for upload in uploads:
        # clean_filename leaves out what a file's name may not have.
        person = re.sub(r'[\\/:*?"<>|]', "", upload.student.name.replace("_", " "))
        prefix = f"{person}_{upload.student.participant}_assignsubmission"
        if upload.typed:
            typed = f"{prefix}_onlinetext{joint}onlinetext.html"
            files.append((typed, upload.typed.encode()))
        for name, content in upload.files:
            files.append((f"{prefix}_file{joint}{name}", content))
    return files


def moodle_worksheet(path, students, uploads, *, numbers=True):
    """Write the grading worksheet, as Moodle in the zone of Berlin shows the times."""
    head = ["Identifier", "Full name", "ID number", "Email address", "Status", "Grade"]
    rows = [[*head, "Maximum grade", "Grade can be changed", "Last modified (submission)"]]
    rows[0] += ["Last modified (grade)", "Feedback comments"]
    made = {upload.student.number: upload.time for upload in uploads}
    for s in students:
        time = made.get(s.number)
        shown = f"{time:%A}, {time.day} {time:%B %Y}, {time:%I:%M %p}" if time else "-"
        status = "Submitted for grading - " if time else "No submission - "
        about = [f"Participant {s.participant}", s.name, s.id if numbers else "", s.email]
        rows.append([*about, status, "", "100.00", "Yes", shown, "-", ""])
    return write_table(path, rows, bom=True)


# Blackboard


def blackboard_files(uploads, *, assignment="Attention_HW", notes=True, zone="EST"):
    """Return the entries of Blackboard's "Assignment File Download"."""
    files = []
    for upload in uploads:
        student, time = upload.student, upload.time
        prefix = f"{assignment}_{student.id}_attempt_{time:%Y-%m-%d-%H-%M-%S}"
        listed = [
            f"\tOriginal filename: {n}\n\tFilename: {prefix}_{n}\n" for n, _ in upload.files
        ]
        note = (
            f"Name: {student.name} ({student.id})\n"
            f"Assignment: {assignment}\n"
            f"Date Submitted: {time:%A, %B} {time.day}, {time:%Y} "
            f"{time.hour % 12 or 12}:{time:%M:%S %p} {zone}\n"
            "Current Grade: Needs Grading\n\nSubmission Field:\n"
            f"{upload.typed or NOTHING_TYPED}\n"
            "\nComments:\nThere are no student comments for this assignment.\n\nFiles:\n"
            + ("\n".join(listed) or "No files were attached to this submission.\n")
        )
        if notes:
            files.append((f"{prefix}.txt", note.encode()))
        files += [(f"{prefix}_{name}", content) for name, content in upload.files]
    return files


# Gradescope


def gradescope_files(groups, *, root="assignment_771_export/"):
    """Return the entries of "Export Submissions"; a group is a list of uploads of one work."""
    files, about = [], []
    for number, group in enumerate(groups, 1_000):
        folder = f"submission_{number}"
        about += [f"{folder}:", "  :submitters:"]
        for upload in group:
            s = upload.student
            about += [f'  - :name: "{s.name}"', f"    :sid: '{s.id}'", f"    :email: {s.email}"]
        about += [
            f"  :created_at: {group[0].time:%Y-%m-%d %H:%M:%S}.123456000 Z",
            "  :score: 0.0",
            "  :status: processed",
            "  :results: !ruby/hash:ActiveSupport::HashWithIndifferentAccess",
            "    tests: []",
            "  :history: []",
        ]
        files += [(f"{root}{folder}/{name}", content) for name, content in group[0].files]
    return [(f"{root}submission_metadata.yml", "\n".join(about).encode()), *files]


# Rosters


def roster(path, students, **columns):
    """Write a table in the form of ``nbgrader db student import``."""
    head = ["id", "first_name", "last_name", "email", "lms_user_id", *columns]
    rows = [head]
    for s in students:
        more = [make(s) for make in columns.values()]
        rows.append([s.id, s.first, s.last, s.email, s.canvas, *more])
    return write_table(path, rows)


def write_table(path, rows, *, bom=False, delimiter=",", encoding="utf-8"):
    """Write a table."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter).writerows(rows)
    path.write_bytes((b"\xef\xbb\xbf" if bom else b"") + text.getvalue().encode(encoding))
    return path
