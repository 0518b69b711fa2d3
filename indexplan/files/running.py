"""Running the tasks of a build on any executor: threads, processes, MPI, a cluster."""

from __future__ import annotations

import pickle
import secrets
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from indexplan.errors import IndexPlanError, invalid
from indexplan.files.machine import num_cores

Item = TypeVar("Item")
Result = TypeVar("Result")

# Enough for a cluster of a thousand cores, as executors have no common way to tell their size. A
# waiting task is a few kB, so a plan of a million chunks still fits in the queue of a small
# machine. A large order is sent with each task; then fewer are in flight.
IN_FLIGHT = 1024
IN_FLIGHT_BYTES = 2**28


def check_executor(executor: Any) -> None:
    """Raise `IndexPlanError` unless tasks can be given to the executor."""
    if executor is not None and not isinstance(executor, Executor):
        cure = "for Dask, pass client.get_executor()"
        raise invalid("executor", "a concurrent.futures.Executor", executor, cure)


def run(
    executor: Executor | None,
    function: Callable[..., Result],
    shared: tuple[Any, ...],
    items: Iterable[Item],
    take: Callable[[Item, Result], None],
) -> None:
    """Call take(item, function(*shared, item)) for each item, in this thread, one after another.

    Parameters
    ----------
    executor : concurrent.futures.Executor or None
        What calls the function; None means one thread for each core.
    function : callable
        A function of a module, so that it can be sent to other processes.
    shared : tuple
        Its first arguments, which all items share.
    items : iterable
        Its last argument; only as many are drawn as are in flight.
    take : callable
        What to do with each result.

    Raises
    ------
    IndexPlanError
        If the arguments cannot be sent, or the executor breaks.
    """
    if executor is None:
        with ThreadPoolExecutor(num_cores()) as threads:
            run(threads, function, shared, items, take)
        return
    if isinstance(executor, ThreadPoolExecutor):
        # threads share the arguments; they take an order that cannot be pickled, too
        call, most = partial(function, *shared), IN_FLIGHT
    else:
        packed = _packed(shared)
        call = partial(_arrived, function, packed)
        most = max(2 * num_cores(), min(IN_FLIGHT, IN_FLIGHT_BYTES // len(packed)))
    running: deque[tuple[Item, Future[Result]]] = deque()

    def take_first() -> None:
        item, future = running.popleft()
        try:
            result = future.result()
        except (BrokenExecutor, CancelledError) as error:
            raise _stopped(error) from error
        take(item, result)

    try:
        for item in items:
            if len(running) == most:
                take_first()
            try:
                future = executor.submit(call, item)
            except RuntimeError as error:
                raise _stopped(error) from error
            running.append((item, future))
        while running:
            take_first()
    finally:
        for _, future in running:
            future.cancel()


def _stopped(error: BaseException) -> IndexPlanError:
    """Return the error about an executor that stopped; `error` says how."""
    got = f"{type(error).__name__} ({error})" if str(error) else type(error).__name__
    cure = "pass a new one, and run the same build again: what is written stays"
    if "start new thread" in str(error):
        cure = "raise the limit on processes (ulimit -u), then run it again"
    return IndexPlanError("the executor", "must run until the build is done", got, cure)


def _packed(shared: tuple[Any, ...]) -> bytes:
    """Return the arguments pickled, so that any executor can send them.

    They are pickled here and unpickled by the task, since a class that cannot be imported would
    otherwise kill the workers of a process pool without a message. The token makes the tasks of one
    build differ from those of the next: else Dask would return the old results, and errors.
    """
    try:
        return pickle.dumps((*shared, secrets.token_hex(8)))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        cure = "define its class at the top of a module, and keep only what can be pickled in it"
        raise IndexPlanError(
            "the order",
            "must be picklable, to be sent to the executor's workers",
            f"{str(error)!r}",
            cure,
        ) from error


def _arrived(function: Callable[..., Result], packed: bytes, item: Any) -> Result:
    try:
        *shared, _ = pickle.loads(packed)  # noqa: S301 (what _packed returned)
    except (ImportError, AttributeError) as error:
        cure = "define it in a module, and install that module there or add it to PYTHONPATH"
        raise IndexPlanError(
            "the order's class",
            "must be importable by every worker of the executor",
            f"{str(error)!r}",
            cure,
        ) from None
    return function(*shared, item)
