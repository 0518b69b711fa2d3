"""Indices computed by JAX: pure functions for jit, vmap, scan and shard_map, of 32-bit lanes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from indexplan import Order, Plan, Shuffle
from indexplan_jax import steady as checks
from indexplan_jax.key_words import U32, key_words
from indexplan_jax.network import permuted, sides_of
from indexplan_jax.steady import STOP, Steady, share_of, steady_of

SHUFFLE = 0  # purpose of key words (docs/specification.md, Keys)
NONE = STOP - 1  # what has no answer; JAX reads the last row there, unless mode="fill" is given


def shuffle(n: int, seed: int, epoch: Any, positions: Any) -> jax.Array:
    """Return the indices at positions of an epoch, as `indexplan.Shuffle(n, seed)` has them.

    It is pure and uses only 32-bit lanes, so it runs on any device, under `jit`, `vmap`, `scan` and
    `shard_map`. It never makes a list of n numbers.

    Parameters
    ----------
    n : int
        Number of samples, 1 <= n < 2**31.
    seed : int
        0 <= seed < 2**128.
    epoch : int or scalar array
        0 <= epoch < 2**32; may be traced.
    positions : array of integers
        In [0, n), of any shape and width; may be traced.

    Returns
    -------
    jax.Array
        int32, of the shape of positions; 2**31 - 1 for a position outside [0, n), and for all if a
        traced epoch is out of range.

    Raises
    ------
    IndexPlanError
        If n, the seed or an epoch that is not traced is out of range; if positions are not
        integers; or if the epoch is not a single integer.

    Examples
    --------
    >>> import jax, indexplan as ip
    >>> from indexplan_jax import shuffle
    >>> shuffle(10, 7, 0, jax.numpy.arange(10)).tolist()
    [3, 2, 0, 9, 1, 8, 5, 4, 6, 7]
    >>> ip.Shuffle(10, seed=7).take(0, 0, 10).tolist()
    [3, 2, 0, 9, 1, 8, 5, 4, 6, 7]
    """
    n, seed, (epoch, is_epoch) = checks.size("n", n), checks.seed(seed), _epoch(epoch)
    words, is_word = _word(_integers("positions", positions))
    is_inside = is_word & (words < n)
    answers = _shuffled(n, seed, epoch, jnp.where(is_inside, words, 0))
    return jnp.where(is_inside & is_epoch, answers.astype(jnp.int32), NONE)


def step_indices(plan: Plan, epoch: Any, step: Any) -> jax.Array:
    """Return the indices that all ranks read in a step, concatenated in rank order.

    Parameters
    ----------
    plan : Plan
        With full steps of one size: remainder "drop", "pad" or "carry", or a
        global batch that divides the samples; no phases, balance or sub-epochs. Its order is a
        `Shuffle` or `Sequential` of fewer than 2**31 samples.
    epoch, step : int or scalar array
        May be traced.

    Returns
    -------
    jax.Array
        int32, shape (global batch,): `plan.batch` of rank 0, of rank 1, and so on. Under "pad" the
        last step ends with repeats. For a traced epoch or step out of range, all are 2**31 - 1,
        which JAX clamps to the last row unless you read by `x.at[indices].get(mode="fill")`. So are
        those past the end of epoch 2**32 - 1 under "carry", if any of the numbers is traced.

    Raises
    ------
    IndexPlanError
        If the plan is not such a plan; if a number that is not traced is out of range; if the step
        reads on past epoch 2**32 - 1; or if an epoch or step is not a single integer.

    Examples
    --------
    >>> import jax, indexplan as ip
    >>> from indexplan_jax import step_indices
    >>> plan = ip.Plan(ip.Shuffle(100), global_batch_size=4, remainder="drop")
    >>> of_a_step = jax.jit(lambda epoch, step: step_indices(plan, epoch, step))
    >>> of_a_step(3, 17).tolist()
    [37, 15, 76, 28]
    >>> plan.replace(world_size=1).batch(epoch=3, step=17, rank=0).tolist()
    [37, 15, 76, 28]
    """
    steady = steady_of(plan)
    lanes = jnp.arange(steady.global_batch, dtype=U32)
    return _of_lanes(plan, steady, epoch, step, lanes, steady.global_batch)


def rank_indices(plan: Plan, epoch: Any, step: Any, rank: Any) -> jax.Array:
    """Return the indices that a rank reads in a step: those of `plan.batch`.

    Parameters
    ----------
    plan : Plan
        As for `step_indices`, with a world_size that divides the global batch.
    epoch, step, rank : int or scalar array
        May be traced, like `jax.lax.axis_index("data")` inside shard_map.

    Returns
    -------
    jax.Array
        int32, shape (global batch / world_size,): 2**31 - 1 where `step_indices` has it, and for
        all if a traced rank is out of range.

    Raises
    ------
    IndexPlanError
        As for `step_indices`, or if the world_size is open or does not divide the global batch.

    Examples
    --------
    >>> import jax, indexplan as ip
    >>> from indexplan_jax import rank_indices
    >>> plan = ip.Plan(ip.Shuffle(100), world_size=2, batch_size=4, remainder="drop")
    >>> all_ranks = jax.vmap(lambda rank: rank_indices(plan, 0, 5, rank))(jax.numpy.arange(2))
    >>> [plan.batch(0, step=5, rank=rank).tolist() for rank in range(2)] == all_ranks.tolist()
    True
    """
    steady = steady_of(plan)
    share, ranks = share_of(plan, steady), plan.world_size or 1
    known = _known("rank", rank)
    if known is None:
        word, is_word = _word(rank)
        is_rank = is_word & (word < ranks)
    else:
        word, is_rank = U32(known := checks.rank(known, ranks)), True
    lanes = jnp.where(is_rank, word, 0) * U32(share) + jnp.arange(share, dtype=U32)
    stop = None if known is None else (known + 1) * share
    return jnp.where(is_rank, _of_lanes(plan, steady, epoch, step, lanes, stop), NONE)


def _known(name: str, number: Any) -> Any:
    """Return a number that is not traced; None for one that is, which has to be one integer."""
    checks.check_shape(name, getattr(number, "shape", ()))
    if isinstance(number, jax.core.Tracer):
        checks.check_dtype(name, "a single integer", number.dtype, "use .astype(int)")
        return None
    return number.item() if isinstance(number, jax.Array) else number


def _word(numbers: Any) -> tuple[Any, Any]:
    """Return integers of any width, of JAX or NumPy, as uint32; and which of them are the same."""
    words = numbers.astype(np.uint32)
    return words, (numbers >= 0) & (words.astype(numbers.dtype) == numbers)


def _epoch(epoch: Any) -> tuple[Any, Any]:
    """Return an epoch as uint32, and whether it is one."""
    known = _known("epoch", epoch)
    return _word(epoch) if known is None else (U32(checks.epoch(known)), True)


def _shuffled(n: int, seed: int, epoch: Any, positions: Any) -> Any:
    """Return the indices at positions of shuffle-v1, as uint32."""
    words = key_words(seed, SHUFFLE, epoch, n, 2 * sides_of(n).rounds)
    return permuted(n, words, positions)


def _taken(order: Order, epoch: Any, positions: Any) -> Any:
    """Return the indices at positions of an order, as uint32; the epoch may be traced."""
    if isinstance(order, Shuffle):
        return _shuffled(order.num_samples, order.seed, epoch, positions)
    return positions  # of Sequential


def _integers(name: str, numbers: Any) -> Any:
    """Return an array: of JAX if anything in it is, else of NumPy, where 64 bits stay as many."""
    is_of_jax = any(isinstance(each, jax.Array) for each in jax.tree.leaves(numbers))
    return checks.integers(name, numbers, jnp.asarray if is_of_jax else np.asarray)


def _of_lanes(
    plan: Plan, steady: Steady, epoch: Any, step: Any, lanes: Any, stop: int | None
) -> jax.Array:
    """Return the indices at some of the places of a step, counted from its start.

    All of them are below `stop`, which is None if it is traced.
    """
    known_step = _check(plan, steady, epoch, step, stop)
    order, n, batch = steady.order, U32(steady.num_units), U32(steady.global_batch)
    epoch, is_epoch = _epoch(epoch)
    word, is_word = _word(step) if known_step is None else (U32(known_step), True)
    begin, num_steps = U32(0), U32(steady.most_steps)
    if steady.remainder == "carry":  # the first step that starts in the epoch
        begin = (batch - _product_modulo(epoch, steady.num_units, steady.global_batch)) % batch
        num_steps = jnp.where(begin < n, (n - begin + batch - 1) // batch, 0)
    is_step = is_word & (word < num_steps)
    places = begin + jnp.where(is_step, word, 0) * batch + lanes
    positions = places % n
    is_there = is_epoch & is_step
    if steady.most_epochs == 1:
        indices = _taken(order, epoch, positions)
    else:
        turns = places // n
        epochs = epoch + jnp.arange(steady.most_epochs, dtype=U32)
        each = jax.vmap(lambda epoch: _taken(order, epoch, positions))(epochs)
        indices = jnp.take_along_axis(each, turns[None].astype(jnp.int32), axis=0)[0]
        is_there &= turns <= U32(checks.EPOCH_STOP - 1) - epoch
    return jnp.where(is_there, indices.astype(jnp.int32), NONE)


def _check(plan: Plan, steady: Steady, epoch: Any, step: Any, stop: int | None) -> int | None:
    """Return a step that is not traced; raise `IndexPlanError` if what is known is out of range."""
    known_epoch, known_step = _known("epoch", epoch), _known("step", step)
    if known_step is None:
        return None
    if known_epoch is None:
        return checks.step(known_step, steady.most_steps)
    plan.step_size(known_epoch, step=known_step)
    if stop is not None:
        checks.check_end(steady, int(known_epoch), int(known_step), stop)
    return int(known_step)


def _product_modulo(x: Any, y: int, modulus: int) -> Any:
    """Return x * y modulo a number below 2**31, by doubling."""
    x, total = x % U32(modulus), jnp.zeros_like(x)
    for bit in f"{y % modulus:b}":
        total = total * 2 % U32(modulus)
        if bit == "1":
            total = (total + x) % U32(modulus)
    return total
