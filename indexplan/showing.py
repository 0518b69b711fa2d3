"""A plan in words, and as JSON types: whole, a step of it, or a batch."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from indexplan.dataset import Dataset
from indexplan.files.format import Manifest
from indexplan.plan import Plan
from indexplan.schedule import Phase

SHOWN = 12  # epochs, or ranks, of many

Shown = tuple[dict[str, Any], str]


def show_batch(plan: Plan, where: dict[str, Any], dataset: Dataset | None) -> Shown:
    """Return a batch's indices, and the names of its files where the dataset has names."""
    indices = plan.batch(**where).tolist()
    data: dict[str, Any] = {"indices": indices, "num_valid": plan.num_valid(**where)}
    if dataset is None or not dataset.names:
        return data, " ".join(map(str, indices))
    data["names"] = [dataset.names[index] for index in indices]
    return data, "\n".join(
        f"{index:>10}  {name}" for index, name in zip(indices, data["names"], strict=True)
    )


def show_step(plan: Plan, epoch: int, sub_epoch: int | None, step: int) -> Shown:
    """Return a step's size, its first ranks' batch sizes, its phase, and its cursor."""
    phase = plan.phase(epoch, sub_epoch, step=step)
    steps = {"start_step": step, "stop_step": step + 1}
    sizes = [
        plan.batch_sizes(epoch, sub_epoch, rank=rank, **steps).tolist()[0]
        for rank in range(min(plan.world_size or 0, SHOWN))
    ]
    data = {
        "step_size": plan.step_size(epoch, sub_epoch, step=step),
        "batch_sizes_of_first_ranks": sizes,
        "phase": phase.to_dict(),
        "cursor": plan.cursor(epoch, sub_epoch, step=step).to_dict(),
    }
    more = " ..." if (plan.world_size or 0) > SHOWN else ""
    words = (
        f"units over all ranks  {data['step_size']}\n"
        f"units of ranks 0, 1,  {' '.join(map(str, sizes)) or 'world_size is open'}{more}\n"
        f"phase                 {_phase_in_words(phase)}"
    )
    return data, words


def show_plan(plan: Plan, manifest: Manifest, epoch: int | None, sub_epoch: int | None) -> Shown:
    """Return a plan's spec, and the account of its stored epochs, or of one of them."""
    build = manifest.build
    epochs = build.epochs[:SHOWN] if epoch is None else (epoch,)
    sized = plan.world_size is not None or plan.batch_size is None
    accounts = [{"epoch": e, **asdict(plan.account(e, sub_epoch))} for e in epochs if sized]
    data = {
        "plan": plan.to_dict(),
        "fingerprint": plan.fingerprint,
        "epochs": list(build.epochs),
        "num_bytes": sum(manifest.chunk_bytes),
        "dataset": build.dataset.to_dict() if build.dataset else None,
        "accounts": accounts,
    }
    name = "global_batch_size" if plan.batch_size is None else "batch_size"
    sizes = "  ".join(_phase_in_words(phase) for phase in plan.phases)
    lines = [
        f"order        {', '.join(f'{k} {v}' for k, v in plan.order.to_dict().items())}",
        f"partition    world_size {plan.world_size or 'open'}, {name} {sizes}",
        f"             sub_epochs {plan.sub_epochs}, remainder {plan.remainder}",
        f"dataset      {_dataset_in_words(build.dataset)}",
        f"files        {len(build.epochs)} epochs, {data['num_bytes']:,} bytes",
        f"fingerprint  {plan.fingerprint}",
        "",
        f"{'epoch':>6} {'steps':>9} {'read':>13} {'dropped':>9} {'padded':>9} {'per rank':>22}",
    ]
    for account in accounts:
        least, most = account["min_per_rank"], account["max_per_rank"]
        each = "world_size is open" if least is None else f"{least:,} to {most:,}"
        lines.append(
            f"{account['epoch']:>6} {account['num_steps']:>9,} {account['num_read']:>13,} "
            f"{account['num_dropped']:>9,} {account['num_padded']:>9,} {each:>22}"
        )
    if not sized:
        lines[-1] = "world_size is open: to see steps, name one with --world-size"
    if len(build.epochs) > len(epochs) and epoch is None:
        lines.append(f"   ... {len(build.epochs) - len(epochs)} more; show one with --epoch")
    return data, "\n".join(lines)


def _phase_in_words(phase: Phase) -> str:
    """Write a phase as `parse_schedule` reads it."""
    size = "x".join(map(str, phase.size)) if isinstance(phase.size, tuple) else str(phase.size)
    at = "/".join(map(str, phase.at)) if isinstance(phase.at, tuple) else str(phase.at)
    parameters = ",".join(f"{name}={value}" for name, value in dict(phase.parameters).items())
    return size if at == "0" and not parameters else f"{at}:{size}" + f":{parameters}".rstrip(":")


def _dataset_in_words(dataset: Dataset | None) -> str:
    if dataset is None:
        return "none remembered"
    what = f"files by {dataset.pattern}" if dataset.pattern else f"rows, {dataset.header}"
    return f"{dataset.num_samples:,} {what}, {dataset.num_bytes:,} bytes"
