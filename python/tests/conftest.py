"""What the tests of the Python package have in common."""

import pathlib

import pytest

import kymograph as ky

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRACES = ROOT / "analysis" / "tests" / "data" / "traces"


@pytest.fixture(scope="session")
def traces():
    """The folder with two ranks of a job, as Kineto wrote them, cut to a step."""
    return TRACES


@pytest.fixture(scope="session")
def job(traces):
    return ky.load(traces)
