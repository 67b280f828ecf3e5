"""A class of attackers and of unlucky students: each gets what the work deserves."""

from pathlib import Path

import breakers
import cheats
import innocent
import pytest
import torch_course
from runs import complaints, run

import seqlib.exercises
from seqlib.grading.sandbox.isolation import IsolationError, require_isolation
from seqlib.grading.sandbox.outside import Outside

ATTACKS = [*innocent.ATTACKS, *cheats.ATTACKS, *breakers.ATTACKS]
# 43 is about the manifest of a learning platform, which is not read yet. 46 and 47 are in
# test_redteam_resubmission.
ELSEWHERE = {43, 46, 47}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.sandbox,
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning"),
]


def test_the_suite_is_complete():
    assert len(ATTACKS) >= 80
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)
    covered = {threat for attack in ATTACKS for threat in attack.threats}
    assert covered | ELSEWHERE == set(range(1, 51))


def offered(level):
    """Return a level; skip the test if the machine does not offer it."""
    try:
        return require_isolation(level)
    except IsolationError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("level", ["namespaces", "landlock"])
def test_every_submission_gets_what_it_deserves(level, tmp_path_factory, tmp_path, monkeypatch):
    attacks = ATTACKS
    if level == "landlock":
        attacks = [a for a in ATTACKS if a.everywhere or a.name == "the solution"]
    folder = Path(tmp_path_factory.mktemp("outside"))
    with Outside(folder) as outside:
        done = run(tmp_path, outside, attacks, offered(level), monkeypatch)
    assert complaints(done) == []
    assert done.around == []
    assert set(done.outcome.records) == set(done.attacks)


def test_every_submission_with_torch_gets_what_it_deserves(
    tmp_path_factory, tmp_path, monkeypatch
):
    monkeypatch.setattr(seqlib.exercises, "ASSIGNMENTS", seqlib.exercises.ASSIGNMENTS)
    torch_course.register()
    level = offered(None)
    with Outside(Path(tmp_path_factory.mktemp("outside"))) as outside:
        done = run(
            *(tmp_path, outside, torch_course.ATTACKS, level, monkeypatch),
            name=torch_course.NAME,
            assignment=torch_course.lay_out,
            kit=torch_course.Kit,
            register="torch_course",
        )
    assert complaints(done) == []
    assert done.around == []
