"""nbgrader with less work: the same gradebook, in one transaction, made without a command."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_course
from nbgrader import api
from nbgrader.api import Gradebook

from seqlib.grading.gradebook.kept import KeptGradebook
from seqlib.grading.gradebook.lean import one_transaction, shared, version_read_here
from seqlib.grading.gradebook.writer import Writer, open_gradebook

pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")


@pytest.fixture
def gradebook(tmp_path):
    with (
        version_read_here(api),
        Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as gradebook,
    ):
        yield gradebook


def students(gradebook):
    """Return what another connection sees."""
    with Gradebook(str(gradebook.engine.url)) as other:
        return [student.id for student in other.students]


def test_nothing_is_seen_before_the_end_and_all_of_it_afterwards(gradebook):
    with one_transaction(gradebook):
        gradebook.add_student("ada")
        gradebook.add_student("ben")
        assert [s.id for s in gradebook.students] == ["ada", "ben"]
        assert students(gradebook) == []
    assert students(gradebook) == ["ada", "ben"]


def test_what_fails_half_way_leaves_nothing_and_the_gradebook_usable(gradebook):
    def fail():
        gradebook.add_student("ada")
        raise KeyError("ben")

    with pytest.raises(KeyError), one_transaction(gradebook):
        fail()
    assert students(gradebook) == []
    with one_transaction(gradebook):
        gradebook.add_student("ada")
    assert students(gradebook) == [s.id for s in gradebook.students] == ["ada"]


def test_an_entry_that_the_database_refuses_drops_the_transaction(gradebook):
    def twice():
        with one_transaction(gradebook):
            gradebook.add_student("ada")
            gradebook.add_student("ada")

    with pytest.raises(api.InvalidEntry):
        twice()
    assert students(gradebook) == []


def test_what_others_write_meanwhile_is_read(gradebook):
    with one_transaction(gradebook):
        gradebook.add_student("ada", first_name="A.")
    with Gradebook(str(gradebook.engine.url)) as other:
        other.update_or_create_student("ada", first_name="Ada")
    with one_transaction(gradebook):
        assert gradebook.find_student("ada").first_name == "Ada"


def test_modules_share_a_gradebook_and_get_their_own_back(gradebook):
    module = type(sys)("module")
    module.Gradebook = Gradebook
    with shared(gradebook, module):
        assert module.Gradebook("sqlite:///elsewhere.db") is gradebook
    assert module.Gradebook is Gradebook


def test_a_new_gradebook_has_the_version_that_nbgrader_gives_it(gradebook, monkeypatch):
    from sqlalchemy import text

    found = gradebook.db.execute(text("SELECT version_num FROM alembic_version")).scalar()
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert found == api.get_alembic_version()


def test_a_gradebook_needs_no_command_on_the_path(tmp_path, monkeypatch):
    tiny_course.register(monkeypatch)
    course = tiny_course.make_course(tmp_path)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(shutil, "which", lambda *_: None)
    with Writer(course, "tiny"), open_gradebook(course) as gradebook:
        assert [a.name for a in gradebook.assignments] == ["tiny"]


@pytest.mark.parametrize("first", ["", "import rfc3987_syntax\n"])
def test_the_import_leaves_out_the_grammars_and_hides_them_from_nobody(first):
    code = first + (
        "import sys\n"
        "before = 'rfc3987_syntax' in sys.modules\n"
        "import seqlib.grading.gradebook.writer\n"
        "assert ('rfc3987_syntax' in sys.modules) == before\n"
        "assert before or 'lark' not in sys.modules\n"
        "import gc\n"
        "assert gc.isenabled() and gc.get_freeze_count() > 100_000\n"
        "import jsonschema, rfc3987_syntax\n"
        "assert rfc3987_syntax.is_valid_syntax('iri', 'http://a.b')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_parts_of_a_submission_are_read_together_and_written_at_the_end(
    tmp_path, monkeypatch
):
    """nbgrader looks up each of three scores and three comments, and commits after each."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    tiny_course.register(monkeypatch)
    course = tiny_course.make_course(tmp_path)
    statements = []

    def note(connection, cursor, statement, *_):
        statements.append(statement)

    with Writer(course, "tiny") as writer, tiny_course.tiny_grader(tmp_path) as grader:
        for student in ("s001", "s002"):
            tiny_course.submit(course, student, tiny_course.solved())
            record = grader.grade(student)
            statements.clear()
            event.listen(Engine, "before_cursor_execute", note)
            try:
                assert writer.apply(record)
            finally:
                event.remove(Engine, "before_cursor_execute", note)
    updates = [s.split()[1] for s in statements if s.startswith("UPDATE")]
    assert {"grade", "comment"} <= set(updates)
    assert not [s for s in statements if "grade.auto_score" in s and s.startswith("SELECT")]
    assert len(statements) < 20


def test_what_is_not_of_the_submission_at_hand_is_looked_up(gradebook):
    gradebook.add_assignment("a")
    with KeptGradebook(str(gradebook.engine.url)) as kept:
        for student in ("ada", "ben"):
            kept.add_student(student)
            kept.add_submission("a", student)
        with kept.at(kept.find_submission("a", "ada")):
            assert kept.find_submission("a", "ben").student.id == "ben"
            for find in (kept.find_grade, kept.find_comment):
                with pytest.raises(api.MissingEntry):
                    find("cell", "a", "a", "ada")
        kept.close()
