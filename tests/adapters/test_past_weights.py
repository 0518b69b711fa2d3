"""A loader whose weights change each epoch resumes with those in force."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan_torch import PlanLoader

N = 12


def drawn(number: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return weights by number."""
    return np.random.default_rng(number).random(N)


def test_a_loader_continues_from_the_weights_in_force() -> None:
    """A state of 50 epochs of weights is loaded with the last ones, and saves the same states."""
    rows = [(each, drawn(each)) for each in range(51)]
    whole = ip.Plan(ip.Weighted(rows), world_size=1, batch_size=2)
    loader = PlanLoader(list(range(N)), whole)
    loader.set_epoch(50)
    passed = iter(loader)
    for _ in range(2):
        next(passed)
    state = json.loads(json.dumps(loader.state_dict()))
    expected = [batch.tolist() for batch in passed]
    for order in (ip.Weighted(drawn(50)), ip.Weighted(np.ones(N)).updated(50, drawn(50))):
        fresh = PlanLoader(list(range(N)), whole.replace(order=order))
        fresh.load_state_dict(state)
        assert fresh.state_dict() == state
        assert [batch.tolist() for batch in fresh] == expected
        assert fresh.state_dict() == loader.state_dict()
    refused = PlanLoader(list(range(N)), whole.replace(order=ip.Weighted(drawn(49))))
    with pytest.raises(ip.IndexPlanError, match="with sha256"):
        refused.load_state_dict(state)
