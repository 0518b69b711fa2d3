"""What `indexplan_jax` says where there is no JAX, as here: .ci/run has it for its own tests."""

from __future__ import annotations

import sys

import pytest

import indexplan as ip
import indexplan_jax
from indexplan.partition.remainders import REMAINDERS, Policy
from indexplan_jax.steady import steady_of


def test_without_jax_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing the package works, as for those who use Grain; taking a function names JAX."""
    for name in [name for name in sys.modules if name.startswith("indexplan_jax.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jax", None)  # as if it were not there
    said = (
        r"indexplan_jax\.shuffle needs jax, which is not installed; pip install 'indexplan\[jax\]"
    )
    with pytest.raises(ModuleNotFoundError, match=said):
        indexplan_jax.shuffle  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'permute'"):
        indexplan_jax.permute  # noqa: B018


@pytest.mark.parametrize("policy", [Policy("wraps", repeats=True), Policy("ends", leaves=True)])
@pytest.mark.parametrize("num_samples", [100, 96])
def test_a_remainder_that_it_does_not_know(
    monkeypatch: pytest.MonkeyPatch, policy: Policy, num_samples: int
) -> None:
    """One that is added to the library is refused until somebody has looked at its steps."""
    monkeypatch.setitem(REMAINDERS, "new", policy)
    plan = ip.Plan(ip.Shuffle(num_samples), world_size=2, batch_size=3, remainder="new")
    why = ", as 6 does not divide 100" if num_samples == 100 else ""
    with pytest.raises(ip.IndexPlanError) as caught:
        steady_of(plan)
    said = f"""plan.remainder must be "drop", "pad" or "carry"{why}; got 'new'; """
    assert str(caught.value) == said + 'use plan.replace(remainder="drop")'
