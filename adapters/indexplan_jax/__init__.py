"""Plans in the JAX world: indices computed on the device, and what Grain reads.

`indexplan_jax` itself needs JAX, `indexplan_jax.grain` needs Grain, and neither the other.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from indexplan.errors import install

if TYPE_CHECKING:
    from indexplan_jax.traced import rank_indices, shuffle, step_indices

__all__ = ["rank_indices", "shuffle", "step_indices"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'indexplan_jax' has no attribute {name!r}")
    try:
        return getattr(import_module("indexplan_jax.traced"), name)
    except ModuleNotFoundError as error:
        if error.name != "jax":  # a broken jax explains itself best
            raise
        message = f"indexplan_jax.{name} needs jax, which is not installed; {install('jax')}"
        raise ModuleNotFoundError(message, name="jax") from error


def __dir__() -> list[str]:
    return __all__
