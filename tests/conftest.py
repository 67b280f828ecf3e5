"""Fixtures shared by all tests."""

import numpy as np
import pytest
from hypothesis import settings

# The same examples on every run: a failure in CI is a failure here.
settings.register_profile("course", derandomize=True, deadline=None, max_examples=25)
settings.load_profile("course")


# What takes longest comes first, so that no process waits for another at the end.
LONGEST = ("test_class_of_200.py", "test_samples.py", "test_redteam_class.py", "test_dask.py")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Bring the longest tests to the front; all others keep their order."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))


@pytest.fixture
def rng():
    """Return a generator with a fixed seed."""
    return np.random.default_rng(20260405)


@pytest.fixture(scope="module")
def student_build(tmp_path_factory):
    """Return a student build that grants one function."""
    from seqlib.grading.sandbox.student_build import write_student_build

    return write_student_build(["seqlib.np.softmax"], tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="module", params=["best", "landlock"])
def sandbox(request):
    """Return a sandbox at the best level of the machine, and at the one without namespaces."""
    from sandbox_tools import LIMITS, open_sandbox

    with open_sandbox(request.param, limits=LIMITS, plots=False) as sandbox:
        yield sandbox


@pytest.fixture
def submission(sandbox, student_build):
    """Return a submission, and assert at the end that nothing of it lives on."""
    from sandbox_tools import assert_gone

    with sandbox.open(student_build) as submission:
        yield submission
        running = submission.process_numbers()
    if running:
        assert_gone(running)
