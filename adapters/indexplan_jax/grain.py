"""Plans in Grain: a dataset for its Dataset API."""

from indexplan.errors import install

try:
    import grain  # noqa: F401 (checked first, to say what is missing)
except ModuleNotFoundError as error:
    if error.name != "grain":  # a broken grain explains itself best
        raise
    raise ModuleNotFoundError(
        f"indexplan_jax.grain needs grain, which is not installed; {install('grain')}",
        name="grain",
    ) from error

from indexplan_jax.dataset import PlanIterDataset

__all__ = ["PlanIterDataset"]
