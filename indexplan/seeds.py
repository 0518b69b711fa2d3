"""Key words: everything random is hashed from (seed, purpose, epoch), never added up."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexplan.errors import whole

SHUFFLE, BLOCKS, WINDOWS = range(3)  # purposes; the next algorithm takes the next free number

SEED_STOP = 2**128
EPOCH_STOP = 2**32  # a larger epoch would spill into a second word and collide with another key


def check_seed(seed: Any) -> int:
    """Return `seed` as an int in [0, 2**128), or raise `IndexPlanError`."""
    return whole("seed", seed, 0, SEED_STOP, "hash other seeds to such an integer first")


def check_epoch(epoch: Any) -> int:
    """Return `epoch` as an int in [0, 2**32), or raise `IndexPlanError`."""
    return whole("epoch", epoch, 0, EPOCH_STOP, "a run ends with epoch 2**32 - 1")


@lru_cache(maxsize=1024)  # SeedSequence takes longer than a batch does
def key_words(seed: int, purpose: int, epoch: int, count: int) -> NDArray[np.uint32]:
    """Return the key words of one purpose in one epoch.

    Returns
    -------
    numpy.ndarray
        uint32, shape (count,), read-only, from `numpy.random.SeedSequence`, whose output NumPy
        guarantees across versions (NEP 19).
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(purpose, epoch))
    words = sequence.generate_state(count).astype(np.uint32, copy=False)
    words.flags.writeable = False
    return words
