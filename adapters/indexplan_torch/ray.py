"""Plans under Ray Train: a PlanLoader in Ray's wrapper, which counts what the loop has received."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from indexplan import IndexPlanError
from indexplan_torch.loader import PlanLoader, handed_over


class PreparedLoader:
    """A PlanLoader in the wrapper that moves its batches to the device, one ahead of the loop.

    All other attributes are the loader's: `set_epoch`, `state_dict`, `step_size` and so on.

    Parameters
    ----------
    loader : PlanLoader
        Its state, `step_size` and `cursor` count what the loop has received from the wrapper.
    wrapped : iterable
        What `prepare_data_loader` made of the loader.
    """

    def __init__(self, loader: PlanLoader, wrapped: Any) -> None:
        self.loader = loader
        self.wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        if name in {"loader", "wrapped"}:  # asked for while unpickling, before they are set
            raise AttributeError(name)
        return getattr(self.loader, name)

    def __len__(self) -> int:
        """Return the steps of the sub-epoch that is set, finished ones included."""
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        """Yield the batches of the steps that are left, on the device."""
        # a generator: Ray's begins a pass each time that `iter` is called
        return handed_over(self.loader, lambda: (batch for batch in self.wrapped))


def prepare(loader: PlanLoader, **options: Any) -> Any:
    """Prepare a PlanLoader as `ray.train.torch.prepare_data_loader` does, and keep its state right.

    Ray's wrapper fetches each batch before the loop asks for it, so with `prepare_data_loader`
    alone the loader's state is one batch ahead of the loop.

    Parameters
    ----------
    loader : PlanLoader
    **options
        As for `prepare_data_loader`.

    Returns
    -------
    PreparedLoader
        Or the loader itself, where Ray does not wrap it.

    Raises
    ------
    IndexPlanError
        If it is not a PlanLoader: Ray rebuilds other loaders, without their batch sampler.

    Examples
    --------
    >>> from torch.utils.data import DataLoader
    >>> try:
    ...     prepare(DataLoader(range(10)))
    ... except IndexPlanError as error:
    ...     print(str(error).rpartition("; ")[2])
    use PlanLoader(dataset, plan)
    """
    if not isinstance(loader, PlanLoader):
        raise IndexPlanError(
            "loader",
            "must be a PlanLoader",
            f"{type(loader).__name__}, which Ray would rebuild without its batch sampler",
            "use PlanLoader(dataset, plan)",
        )
    from ray.train.torch import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
        prepare_data_loader,
    )

    wrapped = prepare_data_loader(loader, **options)
    return loader if wrapped is loader else PreparedLoader(loader, wrapped)
