"""Tasks on an executor: a bounded number in flight, and none begun after an error."""

import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor

import pytest

import indexplan as ip
from indexplan.files.machine import num_cores
from indexplan.files.running import IN_FLIGHT, run


class Counting(ThreadPoolExecutor):
    """A pool that remembers its tasks."""

    def submit(self, *task: object) -> Future:  # type: ignore[override]
        future = super().submit(*task)
        self.__dict__.setdefault("all", []).append(future)
        return future


def test_tasks_in_flight_are_bounded() -> None:
    """A plan of many chunks keeps a bounded number of tasks, and takes each result once."""
    taken: list[int] = []
    most = 0

    def take(item: int, result: int) -> None:
        nonlocal most
        most = max(most, len(pool.all) - len(taken))  # type: ignore[attr-defined]
        assert -item == result
        taken.append(item)

    with Counting(2) as pool:
        run(pool, int.__neg__, (), range(3 * IN_FLIGHT), take)
    assert list(range(3 * IN_FLIGHT)) == sorted(taken)
    assert IN_FLIGHT == most


class Elsewhere(Executor):
    """A pool that nobody knows to be one of threads, so that its tasks travel."""

    def __init__(self) -> None:
        self.pool, self.num_tasks = ThreadPoolExecutor(1), 0

    def submit(self, *task: object) -> Future:  # type: ignore[override]
        self.num_tasks += 1
        return self.pool.submit(*task)

    def shutdown(self, wait: bool = True, **_: object) -> None:
        self.pool.shutdown(wait)


def second(_: bytes, item: int) -> int:
    """Return the second argument."""
    return item


@pytest.mark.parametrize(("num_bytes", "most"), [(2**20, 255), (2**26, 3)])
def test_bytes_in_flight_are_bounded(num_bytes: int, most: int) -> None:
    """Of tasks that carry much, few are in flight at once, but enough for the cores."""
    in_flight: list[int] = []

    def take(*_: int) -> None:
        in_flight.append(pool.num_tasks - len(in_flight))

    most = max(most, 2 * num_cores())
    with Elsewhere() as pool:
        run(pool, second, (b"x" * num_bytes,), range(most + 9), take)
    assert most == max(in_flight)
    assert most + 9 == len(in_flight)


def test_error_cancels_what_waits() -> None:
    """After an error no task begins any more, on an executor that stays open."""
    failed = threading.Event()

    def task(item: int) -> None:
        if item == 0:
            raise ip.PlanFileError("the disk is full")
        failed.wait(60)

    with Counting(1) as pool:
        with pytest.raises(ip.PlanFileError, match="the disk is full"):
            run(pool, task, (), range(100), lambda *_: None)
        cancelled = [future.cancelled() for future in pool.all]  # type: ignore[attr-defined]
        failed.set()
    assert [False, False] == cancelled[:2] or [False, True] == cancelled[:2]
    assert all(cancelled[2:])
