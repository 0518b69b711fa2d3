"""Windows of one long sequence of tokens, cut at other places in each epoch: token-windows-v1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from indexplan.errors import Cure, invalid
from indexplan.orders.base import Int64, Order, Why
from indexplan.orders.fields import SEED, flag, whole
from indexplan.orders.registry import register
from indexplan.orders.traits import Traits
from indexplan.seeds import BINS, PHASES, check_epoch

LENGTH = Cure("pass len(tokens)", "pass how many tokens there are")


def other_windows(mine: Mapping[str, Any], saved: Mapping[str, Any], position: int) -> Why:
    """Return what a run that read windows of another length would lose; () if more differs."""
    length = saved.get("length")
    if not isinstance(length, int) or {**saved, "length": 0} != {**mine, "length": 0}:
        return ()
    cost = f"an epoch of other windows reads again the {position * length} tokens of this one"
    cure = f"use length={length}: {cost}; for longer windows later on, split the documents ahead"
    return f"of a run with windows of {mine['length']} tokens", f"one of {length}", cure


@register
@dataclass(frozen=True, eq=False)
class TokenWindows(Order):
    """Cuts one long sequence of tokens into windows, and reads them shuffled.

    For pre-training on a single file of tokens. An index is the first token of a window, so the
    dataset slices: `dataset[i]` is `tokens[i : i + length + overlap]`, and `len(dataset)` is the
    number of tokens. Each epoch cuts at different places, and reads its windows in a different
    order. No table is stored: 15e12 tokens cost as little as a thousand.

    Parameters
    ----------
    num_tokens : int
        Tokens in the sequence, 1 <= num_tokens < 2**63.
    length : int
        Tokens of a window that are targets, 1 <= length < 2**63: the context length of a model that
        predicts each next token.
    overlap : int, default 1
        Tokens before the targets, which the previous window reads too; length + overlap <=
        num_tokens. A model's targets are its inputs shifted by one token, so 1 gives `length`
        inputs and as many targets. A larger overlap gives context that is not predicted.
    shift : bool, default True
        Whether each epoch cuts at different places. If so, it reads one window less than would fit
        (but at least one), so that all epochs have equally many. If False, windows start at tokens
        0, length, 2 * length, ... in all epochs.
    seed : int, default 0
        0 <= seed < 2**128.

    Raises
    ------
    IndexPlanError
        If a number is out of range, or not even one window fits.

    Notes
    -----
    With n = (num_tokens - overlap) // length, an epoch has u = n windows, or max(1, n - 1) if they
    shift. They start at phase + length * i, for i from 0 to u - 1, shuffled by shuffle-v1. The
    phase is drawn for each epoch, from 0 to num_tokens - overlap - length * u, where the last
    window still fits. So every token except the first `overlap` is a target in some epochs.

    Examples
    --------
    >>> order = TokenWindows(1_000_000, 1024, seed=1)
    >>> order.num_units(epoch=0)
    975
    >>> order.take(0, 0, 3)  # the first tokens of the first three windows
    array([653900, 384588, 428620])
    >>> order.targets(epoch=0), order.targets(epoch=1)
    (range(589, 998989), range(205, 998605))
    """

    num_tokens: int = field(metadata=whole(1, 2**63, LENGTH))
    length: int = field(metadata=whole(1, 2**63, "pass the model's context length"))
    _: KW_ONLY
    overlap: int = field(default=1, metadata=whole(0, 2**63, "leave it out for 1"))
    shift: bool = field(default=True, metadata=flag(True))
    seed: int = field(default=0, metadata=SEED)

    algorithm = "token-windows-v1"
    traits = Traits(reads="at most once")

    def __post_init__(self) -> None:
        super().__post_init__()
        vars(self)["num_samples"] = self.num_tokens
        if self.length + self.overlap > self.num_tokens:
            rule = f"at most {self.num_tokens}, num_tokens"
            got = self.length + self.overlap
            raise invalid("length + overlap", rule, got, "use shorter windows, or more tokens")

    def num_units(self, epoch: int) -> int:
        """Return the number of windows in an epoch."""
        num = (self.num_tokens - self.overlap) // self.length
        return max(1, num - 1) if self.shift else num

    def targets(self, epoch: int) -> range:
        """Return the tokens that are targets in an epoch, each in exactly one window.

        All epochs have equally many. Fewer than 2 * length + overlap tokens are not targets (with
        shift=False, fewer than length + overlap).

        Parameters
        ----------
        epoch : int
            0 <= epoch < 2**32.

        Returns
        -------
        range
            Their numbers. In a window that starts at token i, the targets are tokens
            [i + overlap, i + overlap + length).

        Raises
        ------
        IndexPlanError
            If the epoch is out of range.

        Examples
        --------
        >>> import indexplan as ip
        >>> targets = ip.TokenWindows(103, 20, shift=False).targets(epoch=0)
        >>> targets, len(targets)
        (range(1, 101), 100)
        """
        start = self._phase(check_epoch(epoch)) + self.overlap
        return range(start, start + self.length * self.num_units(epoch))

    def _phase(self, epoch: int) -> int:
        """Return the token at which the first window of an epoch starts."""
        if not self.shift:
            return 0
        low, high = self._key_words(PHASES, epoch, 2).tolist()
        left = self.num_tokens - self.overlap - self.length * self.num_units(epoch)
        return int(low | high << 32) % (left + 1)

    def ip_apart(self, saved: Mapping[str, Any], epoch: int, position: int) -> Why | None:
        return other_windows(self.ip_form, saved, position)

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        self._shuffled(BINS, epoch, self.num_units(epoch), starts, stops, out)
        out *= self.length
        out += self._phase(epoch)

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        windows, rest = np.divmod(indices - self._phase(epoch), self.length)
        num = self.num_units(epoch)
        found = np.flatnonzero((rest == 0) & (windows >= 0) & (windows < num))
        return found, self._unshuffled(BINS, epoch, num, windows[found])
