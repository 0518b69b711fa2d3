"""Orders as arithmetic on tensors: which samples are at some positions, computed on their device.

A `Stretch` of an epoch is computed in one way. Its numbers, keys included, are one tensor, so that
torch.compile makes one kernel for all epochs, and nothing large is hidden in its code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from indexplan import BlockShuffle, IndexPlanError, LocalShuffle, Order, Sequential, Shuffle
from indexplan.types import Stored
from indexplan_torch.networks import (
    LOW,
    NUM_SIDES,
    Network,
    drawn_keys,
    num_rounds,
    num_walks,
    numbers_of,
    permute,
)

Arithmetic = Callable[..., Tensor]  # (positions, numbers, and options by name) -> indices

# purposes of key words (docs/specification.md, Keys)
SHUFFLE, BLOCKS, WINDOWS, LOCAL = 0, 1, 2, 10


@dataclass(frozen=True)
class Stretch:
    """The positions [start, stop) of an epoch, which one arithmetic turns into samples.

    `options` are rounds and walks of networks, which decide what is computed; `numbers` are data.
    """

    start: int
    stop: int
    arithmetic: Arithmetic
    numbers: list[int]
    options: dict[str, int] = field(default_factory=dict)


def key_words(order: Any, purpose: int, epoch: int, count: int) -> list[int]:
    """Return the key words of what an order draws for one purpose in one epoch."""
    numbers = purpose, epoch, order.num_samples
    words: list[int] = (
        np.random.SeedSequence(order.seed, spawn_key=numbers).generate_state(count).tolist()
    )
    return words


def of_network(numbers: Tensor, first: int, rounds: int = 0) -> Network:
    """Return the network whose numbers are some of these."""
    stop = first + NUM_SIDES
    a, b, last_left, last_right = numbers[first:stop].unbind()
    return Network(a, b, last_left, last_right, numbers[stop : stop + 2 * rounds].unbind())


# --- Sequential and Shuffle


def sequential(positions: Tensor, numbers: Tensor) -> Tensor:  # noqa: ARG001 (as the others)
    """Return the samples of Sequential."""
    return positions


def sequential_stretches(order: Sequential, epoch: int) -> Iterator[Stretch]:  # noqa: ARG001
    """Yield the one stretch of an epoch of Sequential."""
    yield Stretch(0, order.num_samples, sequential, [0])


def shuffle(positions: Tensor, numbers: Tensor, *, rounds: int, walks: int) -> Tensor:
    """Return the samples of Shuffle."""
    return permute(positions, of_network(numbers, 0, rounds), walks)


def shuffle_stretches(order: Shuffle, epoch: int) -> Iterator[Stretch]:
    """Yield the one stretch of an epoch of Shuffle."""
    n = order.num_samples
    rounds = num_rounds(n)
    numbers = numbers_of(n, key_words(order, SHUFFLE, epoch, 2 * rounds))
    yield Stretch(0, n, shuffle, numbers, {"rounds": rounds, "walks": num_walks(n)})


# --- windows, each with keys of its own

IN_WINDOWS = 5 + NUM_SIDES  # numbers: start, places, first window, two of the key; a network's


def windows_of(start: int, places: int, first: int, key: list[int]) -> list[int]:
    """Return the numbers of windows of so many places, from a position and a window on."""
    return [start, places, first, *key, *numbers_of(places)]


def in_windows(
    positions: Tensor, numbers: Tensor, rounds: int, walks: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the window of each position, the window's start, and the place drawn in it."""
    start, places, first, k0, k1 = numbers[:5].unbind()
    at = positions - start
    window = at // places
    begin = window * places
    keys = drawn_keys(first + window, k0, k1, rounds)
    network = of_network(numbers, 5)._replace(keys=keys)
    return first + window, start + begin, permute(at - begin, network, walks)


def local(positions: Tensor, numbers: Tensor, *, rounds: int, walks: int) -> Tensor:
    """Return the samples of LocalShuffle."""
    _, start, place = in_windows(positions, numbers, rounds, walks)
    return start + place


def local_stretches(order: LocalShuffle, epoch: int) -> Iterator[Stretch]:
    """Yield the full windows of an epoch of LocalShuffle, and the last one if it is smaller."""
    n = order.num_samples
    window = min(order.window, n)
    key = key_words(order, LOCAL, epoch, 2)
    whole = n // window * window
    for start, stop, places in ((0, whole, window), (whole, n, n - whole)):
        if start < stop:
            numbers = windows_of(start, places, start // window, key)
            options = {"rounds": num_rounds(places), "walks": num_walks(places)}
            yield Stretch(start, stop, local, numbers, options)


def blocks(
    positions: Tensor,
    numbers: Tensor,
    *,
    rounds: int,
    walks: int,
    block_rounds: int,
    block_walks: int,
) -> Tensor:
    """Return the samples of BlockShuffle.

    From the place `turn` of its window on, a place is past the slot of the block that is short.
    """
    window, _, place = in_windows(positions, numbers, rounds, walks)
    slots, size, turn, after = numbers[IN_WINDOWS : IN_WINDOWS + 4].unbind()
    past = place >= turn
    place = torch.where(past, place - turn, place)
    slot = place // size
    within = place - slot * size
    slot = slot + torch.where(past, after, window * slots)
    network = of_network(numbers, IN_WINDOWS + 4, block_rounds)
    return permute(slot, network, block_walks) * size + within


def block_stretches(order: BlockShuffle, epoch: int) -> Iterator[Stretch]:
    """Yield windows of as many places each: those before the short block, its own, and the rest."""
    n = order.num_samples
    size = min(order.block_size, n)
    num_slots = (n - 1) // size + 1
    slots = min(order.window, num_slots)
    missing = num_slots * size - n
    rounds = num_rounds(num_slots)
    key = key_words(order, WINDOWS, epoch, 2)
    cipher = numbers_of(num_slots, key_words(order, BLOCKS, epoch, 2 * rounds))
    short = slot_of(num_slots - 1, num_slots, cipher[NUM_SIDES:])
    held, last = short // slots, (num_slots - 1) // slots  # windows: its own, and the last one
    for first, stop in pairwise(sorted({0, held, held + 1, last, last + 1})):
        places = (min((first + 1) * slots, num_slots) - first * slots) * size
        start, turn = first * slots * size, places
        if first == held:
            places, turn = places - missing, (short + 1 - first * slots) * size - missing
        elif first > held:
            start -= missing
        numbers = [*windows_of(start, places, first, key), slots, size, turn, short + 1, *cipher]
        options = {"rounds": num_rounds(places), "walks": num_walks(places)}
        options |= {"block_rounds": rounds, "block_walks": num_walks(num_slots)}
        yield Stretch(start, start + (stop - first) * places, blocks, numbers, options)


def slot_of(block: int, num_slots: int, words: list[int]) -> int:
    """Return the slot of a block: the inverse of the network, for a single number."""
    a, b, *_ = numbers_of(num_slots)

    def f(x: int, i: int, m: int) -> int:
        t = (x ^ words[2 * i]) * 0xD2511F53
        t = (t ^ (t >> 32)) & LOW
        t = (t ^ words[2 * i + 1]) * 0xCD9E8D57
        t = (t ^ (t >> 32)) & LOW
        return (t * m) >> 32

    while True:
        left, right = divmod(block, b)
        for i in range(len(words) // 2 - 2, -1, -2):
            right = (right - f(left, i + 1, b)) % b
            left = (left - f(right, i, a)) % a
        block = left * b + right
        if block < num_slots:
            return block


STRETCHES: dict[type[Order], Callable[..., Iterator[Stretch]]] = {
    Sequential: sequential_stretches,
    Shuffle: shuffle_stretches,
    LocalShuffle: local_stretches,
    BlockShuffle: block_stretches,
}


def computed(order: Order) -> Order:
    """Return the order that is computed on a device: where it is stored, the one in its files.

    Raises
    ------
    IndexPlanError
        If it is not one of these; a subclass of theirs may read something else.
    """
    source = (order.known[0] or order) if isinstance(order, Stored) else order
    if type(source) not in STRETCHES:
        raise IndexPlanError(
            "a plan on a device",
            f"must be of one of the orders {', '.join(kind.__name__ for kind in STRETCHES)}",
            order.to_dict()["algorithm"],
            "use PlanLoader, or one of these orders",
        )
    return source
