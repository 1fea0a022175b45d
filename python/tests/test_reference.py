"""What the documentation says of the package is what its docstrings say."""

import importlib.util
import pathlib

import pytest

import kymograph as ky

pytestmark = pytest.mark.heavy


def test_the_reference_is_current():
    here = pathlib.Path(__file__).resolve().parents[1]
    spec = importlib.util.spec_from_file_location("reference", here / "reference.py")
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    written = reference.TARGET.read_text(encoding="utf-8")
    assert written == reference.source(), "run python/reference.py"


def test_everything_public_is_documented():
    for name in ky.__all__:
        assert name == "__version__" or getattr(ky, name).__doc__, name
