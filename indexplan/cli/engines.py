"""Where a verb's tasks run: threads of this process, or the workers of a Dask cluster."""

from __future__ import annotations

import argparse
import contextlib
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from indexplan.errors import IndexPlanError, install
from indexplan.files.machine import num_cores

if TYPE_CHECKING:
    from concurrent.futures import Executor


def add_engine(command: argparse.ArgumentParser) -> None:
    """Add the option that runs a verb's tasks on Dask."""
    words = "run on the Dask cluster of this scheduler, tcp://HOST:8786; local: a process per core"
    command.add_argument("--dask", metavar="ADDRESS|local", help=words)


@contextlib.contextmanager
def engine(options: Any) -> Iterator[Executor | None]:
    """Connect to the executor that the command names; None means threads of this process.

    Raises
    ------
    IndexPlanError
        If Dask is not installed, no scheduler answers at the address within the time that Dask's
        `distributed.comm.timeouts.connect` gives, or workers die again and again.
    """
    if options.dask is None:
        yield None
        return
    try:
        from dask.distributed import Client, KilledWorker, LocalCluster
    except ImportError as error:
        cure = install("dask")
        raise IndexPlanError("--dask", "needs dask.distributed", None, cure) from error
    with contextlib.ExitStack() as stack:
        address: Any = options.dask
        if address == "local":
            cluster = LocalCluster(
                n_workers=num_cores(),
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",  # None would still take port 8787
            )
            said = logging.getLogger("distributed")
            stack.callback(said.setLevel, said.level)  # again, when all has ended
            address = stack.enter_context(cluster)
        else:
            _check_scheduler(address)
        client = stack.enter_context(Client(address, set_as_default=False))
        try:
            yield client.get_executor()
            if options.dask == "local":
                client.run(_say_no_more, on_error="ignore")
                _say_no_more()
        except KilledWorker as error:
            cure = "give them more memory or time, then run the same build again"
            raise IndexPlanError(
                "the workers of the Dask cluster",
                "must stay alive",
                f"{_first_line(error)!r}",
                cure,
            ) from error


def _say_no_more() -> None:
    """Let workers end in silence.

    One whose heart beats just then logs that its scheduler left, and who ends one that is slow to
    end, in this process, that it did.
    """
    logging.getLogger("distributed").setLevel(logging.CRITICAL)


def _check_scheduler(address: str) -> None:
    """Raise `IndexPlanError` unless a scheduler answers in time; a client might never return."""
    import asyncio  # which no other command needs, and which takes 20 ms

    import dask
    from dask.utils import parse_timedelta
    from distributed import Security, rpc

    limit = parse_timedelta(dask.config.get("distributed.comm.timeouts.connect"))

    async def ask() -> None:
        secrets = Security().get_connection_args("client")
        async with rpc(address, timeout=limit, connection_args=secrets) as scheduler:
            await scheduler.identity()

    try:
        asyncio.run(asyncio.wait_for(ask(), limit))
    except (TimeoutError, OSError, ValueError) as error:
        reason = _first_line(error) if isinstance(error, ValueError) else f"no answer in {limit} s"
        cure = "start a scheduler there with `dask scheduler`, or check the address"
        got = f"{address!r} ({reason})"
        raise IndexPlanError(
            "--dask", "must be the address of a running Dask scheduler, or local", got, cure
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
