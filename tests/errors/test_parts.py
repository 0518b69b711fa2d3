"""An error keeps what it says in parts, wherever it travels."""

from __future__ import annotations

import copy
import pickle

import pytest

import indexplan as ip
from indexplan.errors import in_file, invalid

PARTS = ("size", "must be an integer", "'two'", "pass 2")
TEXT = "size must be an integer; got 'two'; pass 2"


def parts(error: ip.IndexPlanError) -> tuple[str, str, str | None, str]:
    """Return the parts of an error."""
    return error.what, error.rule, error.got, error.cure


@pytest.mark.parametrize("kind", [ip.IndexPlanError, ip.PlanFileError])
@pytest.mark.parametrize("travel", [lambda error: error, copy.copy, copy.deepcopy, pickle.dumps])
def test_parts(kind: type[ip.IndexPlanError], travel: object) -> None:
    """An error, its copy and its pickle have the same kind, parts and sentence."""
    error = travel(kind(*PARTS))
    error = pickle.loads(error) if isinstance(error, bytes) else error  # noqa: S301 (our own)
    assert (kind, PARTS, TEXT) == (type(error), parts(error), str(error))


def test_an_error_without_a_value() -> None:
    """Where nothing was got, nothing is said of it."""
    error = ip.IndexPlanError("verb", "needs PLAN", None, "see help")
    assert "verb needs PLAN; see help" == str(error)
    assert None is error.got


def test_what_is_not_text() -> None:
    """Paths and numbers are written as text; a value that is shown, as Python writes it."""
    assert ("3", "must be", "4", "go") == parts(ip.IndexPlanError(3, "must be", 4, "go"))
    assert TEXT == str(invalid("size", "an integer", "two", "pass 2"))


def test_a_text_alone() -> None:
    """A text is the whole message, as in a kind of order of one's own."""
    error = pickle.loads(pickle.dumps(ip.IndexPlanError("stop\nthere")))  # noqa: S301 (our own)
    assert ("stop\nthere", "", None, "") == parts(error)
    assert r"stop\nthere" == str(error)


def test_an_error_about_a_part_of_a_file() -> None:
    """A file's name comes before what is wrong in it, and the rest stays."""
    error = in_file("a.json", ip.IndexPlanError(*PARTS))
    assert ip.PlanFileError is type(error)
    assert ("a.json: size", *PARTS[1:]) == parts(error)
    assert f"a.json: {TEXT}" == str(error)
    assert "a.json: stop" == str(in_file("a.json", ip.IndexPlanError("stop")))
