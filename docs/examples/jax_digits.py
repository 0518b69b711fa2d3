"""A jitted training step in JAX; stopped, and resumed on other devices or in other processes.

    export XLA_FLAGS=--xla_force_host_platform_device_count=4 JAX_PLATFORMS=cpu
    python docs/examples/jax_digits.py --checkpoint jax.npz --max-steps 40
    python docs/examples/jax_digits.py --checkpoint jax.npz   # or with any number that divides 48

On two processes, each with its own devices:

    python docs/examples/jax_digits.py --checkpoint jax.npz --address localhost:7777 --process 0 &
    python docs/examples/jax_digits.py --checkpoint jax.npz --address localhost:7777 --process 1

A step reads 48 images of scikit-learn's digits, split over any number of devices. The last step of
an epoch has only 8, and is padded to the same shape.
"""

import argparse
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from sklearn.datasets import load_digits

import indexplan as ip

NUM_TRAIN, EPOCHS = 1400, 3


def loss_sum(params: Any, images: jax.Array, labels: jax.Array, valid: jax.Array) -> jax.Array:
    """Return the sum of the losses, without padding."""
    hidden = jax.nn.relu(images @ params["in"])
    scores = jax.nn.log_softmax(hidden @ params["out"])
    return -(scores[jnp.arange(len(labels)), labels] * valid).sum()


@jax.jit
def train_step(state: Any, batch: Any, step_size: Any) -> tuple[Any, jax.Array]:
    """Return the state after a step of SGD with momentum, and the step's mean loss."""
    params, momentum = state
    total, gradients = jax.value_and_grad(loss_sum)(params, *batch)
    # All devices' gradients are summed; this makes it the mean over the step's images.
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g / step_size, momentum, gradients)
    params = jax.tree.map(lambda p, m: p - 0.1 * m, params, momentum)
    return (params, momentum), total / step_size


def fresh() -> Any:
    """Return parameters and momentum before the first step."""
    draw = np.random.default_rng(0).normal
    shapes = {"in": (64, 32), "out": (32, 10)}
    params = {
        name: (draw(size=shape) / shape[0] ** 0.5).astype(np.float32)
        for name, shape in shapes.items()
    }
    return params, {name: np.zeros_like(array) for name, array in params.items()}


def is_whole(plan: ip.Plan, epoch: int, step: int, mine: np.ndarray) -> bool:
    """Return whether what all processes read together is the step's global batch."""
    read = np.asarray(multihost_utils.process_allgather(mine)).ravel()
    return np.array_equal(read, plan.replace(world_size=1).batch(epoch, step=step, rank=0))


def train(checkpoint: Path, max_steps: int | None) -> None:
    """Train the rest of the epochs, or some steps of them."""
    images, labels = load_digits(return_X_y=True)
    images, labels = (images[:NUM_TRAIN] / 16).astype(np.float32), labels[:NUM_TRAIN]
    rank, world_size = jax.process_index(), jax.process_count()
    order = ip.Shuffle(NUM_TRAIN, seed=0)
    whole = ip.Plan(order, world_size=world_size, global_batch_size=48, remainder="pad")
    mesh = Mesh(np.array(jax.devices()), ("data",))
    rows, everywhere = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("data",), ()))

    plan, state = whole, fresh()
    if checkpoint.exists():
        with np.load(checkpoint) as saved:
            plan = whole.resume(ip.Cursor.from_json(str(saved["cursor"])))
            state = tuple({name: saved[f"{name}-{i}"] for name in state[i]} for i in range(2))
    start = plan.start
    print(
        f"process {rank} of {world_size}, {len(jax.devices())} devices, "
        f"starts at epoch {start.epoch}, step {start.step}"
    )
    state = jax.device_put(state, everywhere)

    done, whole_steps, cursor = 0, 0, start
    for epoch in range(start.epoch, EPOCHS):
        for step in plan.steps(epoch):
            indices = plan.batch(epoch, step=step, rank=rank)
            whole_steps += is_whole(whole, epoch, step, indices)
            valid = np.arange(len(indices)) < plan.units(epoch, step=step, rank=rank).num_valid
            batch = [
                jax.make_array_from_process_local_data(rows, array)
                for array in (images[indices], labels[indices], valid)
            ]
            size = np.float32(plan.step_size(epoch, step=step))
            state, loss = train_step(state, batch, size)
            cursor = plan.cursor(epoch, step=step + 1)
            done += 1
            if done == max_steps:
                break
        if done == max_steps:
            break
    if rank == 0:
        print(f"loss {loss:.6f}; {whole_steps} of {done} steps read the global batch")
        arrays = {f"{name}-{i}": state[i][name] for i in range(2) for name in state[i]}
        np.savez(checkpoint, cursor=cursor.to_json(), **arrays)


def main() -> None:
    """Train in one process, or in process number `--process` of two."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--max-steps", type=int, help="stop after this many steps")
    parser.add_argument("--address", help="host:port of process 0, if there are several")
    parser.add_argument("--process", type=int, help="the number of this one")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    if options.address:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")  # between CPUs
        jax.distributed.initialize(options.address, options.processes, options.process)
    train(options.checkpoint, options.max_steps)


if __name__ == "__main__":
    main()
