"""Orders that break one law each of what stands for an order: copies, plan files and plans."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import indexplan as ip
from indexplan.orders.units import expand
from tests.support.bins import at
from tests.support.planted import PLANTED, Good, Int64, N, Planted, planted

PROCESS = "answer the same in a new process"


@planted("leave __eq__ and __hash__ to Order", "an __eq__ or __hash__ of ComparesFields", eq=True)
class ComparesFields(Good):
    pass


@planted("be registered", "algorithm 'test-kit-unregistered-v1', which is not", register=False)
class Unregistered(Good):
    pass


DICT = "come back from its dict form"


@planted(DICT, "TypeError (Object of type int64 is not JSON serializable)")
class NumPyField(Good):
    shift: Any = np.int64(0)  # type: ignore[assignment]


@planted(
    DICT,
    "IndexPlanError (shift of an order of test-kit-changesitsfield-v1 must be as its to_dict "
    "writes them; got {'algorithm': 'test-kit-changesitsfield-v1', 'num_samples': 30, 'shift': 1}; "
    "write specs with to_json)",
)
class ChangesItsField(Good):
    def __post_init__(self) -> None:
        object.__setattr__(self, "shift", self.shift + 1)


class TakesAName(ip.Sequential):
    """Reads otherwise than the order whose algorithm it says it is."""

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        out[:] = N - 1 - expand(starts, stops)

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        return at(N - 1 - indices)


SAID = "take(0, ...)[0] = 0 from the copy, and 29 from the order"
PLANTED.append(Planted(TakesAName, DICT, SAID, register=False))


@planted("come back from a pickle", "take(0, ...)[0] = 0 from the copy, and 1 from the order")
class LosesItsShift(Good):
    def __post_init__(self) -> None:
        object.__setattr__(self, "moved", 1)

    def __getstate__(self) -> Any:
        return {"num_samples": self.num_samples, "shift": self.shift}

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        super().fill(epoch + getattr(self, "moved", 0), starts, stops, out)

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        return at(super().find(epoch + getattr(self, "moved", 0), indices)[1])


@planted(PROCESS, "", n=2**22 + 1)  # more than there are numbers of processes
class OfThisProcess(Good):
    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        super().fill(epoch + os.getpid(), starts, stops, out)

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        return at(super().find(epoch + os.getpid(), indices)[1])


@planted(
    "accept its own cursors, and no other order's",
    "False from continues for its own dict form",
)
class NeverGoesOn(Good):
    def continues(self, saved: Any, epoch: int, position: int) -> bool:
        return False


@planted(
    "accept its own cursors, and no other order's",
    "True from continues for algorithm another-v1",
)
class GoesOnFromAll(Good):
    def continues(self, saved: Any, epoch: int, position: int) -> bool:
        return True


@planted(
    "answer the same from a plan directory",
    "take(0, ...)[11] = 12 from the directory, and 11 from the order",
)
class WrongInOneChunk(Good):
    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        super().fill(
            epoch + (starts.tolist() == [11] and stops.tolist() == [22]), starts, stops, out
        )


PLANS = "make plans that read each unit once, and locate it"


@planted(PLANS, "epoch 0, sub-epoch 0, step 0: rank 0 is not found again (spread)")
class WrongOfTwo(Good):
    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        return at(super().find(epoch + (len(indices) == 2), indices)[1])


@planted(PLANS, "batches of epoch 0 that are not what take reads")
class WrongInFiveIntervals(Good):
    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        super().fill(epoch + (len(starts) == 5), starts, stops, out)
