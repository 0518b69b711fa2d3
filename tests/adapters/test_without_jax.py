"""What `indexplan_jax` says where there is no JAX, as here: .ci/run has it for its own tests."""

from __future__ import annotations

import sys

import pytest

import indexplan_jax


def test_without_jax_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing the package works, as for those who use Grain; taking a function names JAX."""
    for name in [name for name in sys.modules if name.startswith("indexplan_jax.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jax", None)  # as if it were not there
    said = r"indexplan_jax\.shuffle needs jax, which is not installed; pip install jax"
    with pytest.raises(ModuleNotFoundError, match=said):
        indexplan_jax.shuffle  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'permute'"):
        indexplan_jax.permute  # noqa: B018
