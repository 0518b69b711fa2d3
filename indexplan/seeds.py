"""Key words: everything random is hashed from (seed, purpose, epoch, size), never added up."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexplan.errors import integer, invalid

# Purposes: each is an independent random stream of a seed.
SHUFFLE, BLOCKS, WINDOWS, WORKERS = range(4)
WEIGHTED, WEIGHTED_ROW, MIXTURE, CLASS_ROWS, CLASS_NUMBERS, MEMBERS, LOCAL = range(4, 11)
SHARDS, PIECES, LANES = range(11, 14)
BINS, STRATA, PHASES, DOCUMENTS, SPLITS = range(14, 19)
DISTINCT_TURNS, DISTINCT_LABELS, DISTINCT_COPIES, DISTINCT_BATCHES, DISTINCT_SLOTS = range(19, 24)

SEED_STOP = 2**128
MOST_EPOCHS = 2**20  # most epochs that a call may ask for, as it lists them
EPOCH_STOP = 2**32  # a larger epoch would need a second word, and could collide with another key


def check_seed(seed: Any) -> int:
    """Return `seed` as an int in [0, 2**128), or raise `IndexPlanError`."""
    return integer("seed", seed, 0, SEED_STOP, "hash other seeds to such an integer first")


def check_epoch(epoch: Any) -> int:
    """Return `epoch` as an int in [0, 2**32), or raise `IndexPlanError`."""
    cure = "count from 0; a run ends with epoch 2**32 - 1"
    return integer("epoch", epoch, 0, EPOCH_STOP, cure)


def check_epochs(epochs: Any) -> list[int]:
    """Return epochs as a list of ints in [0, 2**32), or raise `IndexPlanError`."""
    try:
        some = islice(iter(epochs), MOST_EPOCHS + 1)
    except Exception:  # TypeError, or whatever a user's class raises
        cure = "pass range(3), or [3] for one"
        raise invalid("epochs", "an iterable of integers", epochs, cure) from None
    if isinstance(epochs, range):  # all lie between its ends
        first = epochs[: MOST_EPOCHS + 1]
        within = all(0 <= end < EPOCH_STOP for end in (*first[:1], *first[-1:]))
        numbers = [*first] if within else [check_epoch(epoch) for epoch in first]
    else:
        numbers = [check_epoch(epoch) for epoch in some]
    if len(numbers) > MOST_EPOCHS:
        got = epochs if isinstance(epochs, range) else "more"
        raise invalid("epochs", f"at most {MOST_EPOCHS} epochs", got, "pass fewer at a time")
    return numbers


@lru_cache(maxsize=1024)  # SeedSequence takes longer than a batch does
def key_words(
    seed: int, purpose: int, epoch: int, count: int, size: int | None
) -> NDArray[np.uint32]:
    """Return the key words of one purpose in one epoch of an order of some size.

    Without the size, shuffles of nearly equal sizes would be nearly the same permutation. Only a
    mixture passes None, because its size changes when sources are added to a run.

    Returns
    -------
    numpy.ndarray
        uint32, shape (count,), read-only, from `numpy.random.SeedSequence`, whose output NumPy
        guarantees across versions (NEP 19).
    """
    numbers = (purpose, epoch) if size is None else (purpose, epoch, size)
    sequence = np.random.SeedSequence(seed, spawn_key=numbers)
    words = sequence.generate_state(count).astype(np.uint32, copy=False)
    words.flags.writeable = False
    return words


def worker_seed(seed: int, *, epoch: int, rank: int, worker: int) -> int:
    """Return the seed for what a loader's worker draws in an epoch, such as augmentation.

    It is hashed from all four numbers, so no two workers, ranks, epochs or seeds draw the same. All
    ranks must agree on the order of the samples, but their augmentation must differ.

    Parameters
    ----------
    seed : int
        The seed of the run, 0 <= seed < 2**128.
    epoch, rank, worker : int
        0 <= number < 2**32 each. If the main process loads the data itself, it is worker 0.

    Returns
    -------
    int
        0 <= seed < 2**64.

    Raises
    ------
    IndexPlanError
        If a number is out of range.

    Examples
    --------
    >>> worker_seed(0, epoch=1, rank=0, worker=0) == worker_seed(1, epoch=0, rank=0, worker=0)
    False
    """
    numbers = [check_epoch(epoch)]
    for name, number in (("rank", rank), ("worker", worker)):
        numbers.append(integer(name, number, 0, EPOCH_STOP, "count from 0"))
    sequence = np.random.SeedSequence(check_seed(seed), spawn_key=(WORKERS, *numbers))
    return int(sequence.generate_state(1, np.uint64)[0])
