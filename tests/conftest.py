"""Fixtures shared by all tests."""

import numpy as np
import pytest
from hypothesis import settings

# The same examples on every run: a failure in CI is a failure here.
settings.register_profile("course", derandomize=True, deadline=None, max_examples=25)
settings.load_profile("course")


@pytest.fixture
def rng():
    """Return a generator with a fixed seed."""
    return np.random.default_rng(20260405)
