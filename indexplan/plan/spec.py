"""The rules for the fields of a plan, and plans as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypedDict

from indexplan.canonical import check_fields
from indexplan.errors import IndexPlanError, did_you_mean, integer, wrong
from indexplan.orders.base import Order
from indexplan.orders.columns import Columns
from indexplan.orders.nesting import check_parts_known
from indexplan.orders.registry import order_from_dict
from indexplan.partition.phases import SIZE_STOP, Phase, Size, as_phases, size_to_json
from indexplan.partition.remainders import REMAINDERS, Remainder
from indexplan.partition.steps import Partition, Resume
from indexplan.plan.balance import Balance
from indexplan.plan.cursor import check_place

if TYPE_CHECKING:
    from indexplan.plan.plan import Plan

WORLD_STOP = 2**31
PARTITION_VERSION = "partition-v1"  # other batches from the same fields need another version
SIZES = ("batch_size", "global_batch_size")


class Changes(TypedDict, total=False):
    """The fields of a plan that `Plan.replace` can change."""

    order: Order
    world_size: int | None
    batch_size: Size | Sequence[Phase] | str | None
    global_batch_size: Size | Sequence[Phase] | str | None
    sub_epochs: int
    remainder: Remainder
    balance: Balance | None


def check_spec(plan: Plan) -> dict[str, Any]:
    """Check the fields of a plan, and return them in their normal form, the same for equal plans.

    Raises
    ------
    IndexPlanError
        If a field breaks its rule.
    """
    if not isinstance(plan.order, Order):
        raise wrong("order", "an Order", plan.order, "pass indexplan.Shuffle(len(dataset))")
    check_parts_known(plan.order)
    written: dict[str, Any] = {}
    if plan.world_size is not None:
        cure = "leave it out to keep it open"
        written["world_size"] = integer("world_size", plan.world_size, 1, WORLD_STOP, cure)
    cure = "leave it out for one sub-epoch an epoch"
    written["sub_epochs"] = integer("sub_epochs", plan.sub_epochs, 1, 2**63, cure)
    if not isinstance(plan.remainder, str) or plan.remainder not in REMAINDERS:
        rule = f"one of {', '.join(REMAINDERS)}"
        cure = did_you_mean(plan.remainder, REMAINDERS) + "leave it out for spread"
        raise wrong("remainder", rule, plan.remainder, cure)
    for name in SIZES:
        if getattr(plan, name) is not None:
            plain = len(plan._phases) == 1 and not plan._phases[0].parameters
            written[name] = plan._phases[0].size if plain else plan._phases
    if plan._resumed is not None:
        if not isinstance(plan._resumed, Resume):
            raise wrong("resumed", "a Resume", plan._resumed, "use plan.resume(cursor)")
        written["_resumed"] = check_place(plan._resumed, plan.order, written["sub_epochs"])
    return written


def phases_of(plan: Plan) -> tuple[Phase, ...]:
    """Return the phases of a plan's schedule; a single one if the batch size is constant."""
    given = [name for name in SIZES if getattr(plan, name) is not None]
    if len(given) != 1:
        got = "both" if given else "neither"
        cure = "pass batch_size for the units of one rank, or global_batch_size for those of all"
        raise IndexPlanError(
            "exactly one of batch_size and global_batch_size", "must be given", got, cure
        )
    phases = as_phases(given[0], getattr(plan, given[0]))
    if len(phases) == 1 and not phases[0].parameters:
        return (Phase(size=phases[0].size),)  # the same value for what means the same
    return phases


def partition_of(plan: Plan) -> Partition:
    """Return the numbers that the partition needs; without sizes while they are open."""
    ranks = plan.world_size if plan.global_batch_size is None else 1
    sizes = tuple(phase.num_units * ranks for phase in plan._phases) if ranks else ()
    for size in sizes:
        integer("batch_size * world_size", size, 1, SIZE_STOP, "use smaller batches")
    return Partition(
        world_size=plan.world_size,
        ats=tuple(phase.at for phase in plan._phases),
        sizes=sizes,
        sub_epochs=plan.sub_epochs,
        remainder=plan.remainder,
        resume=plan._resumed,
    )


def check_phases(plan: Plan, partition: Partition) -> None:
    """Raise `IndexPlanError` unless the phases rise, and the order's epochs allow them."""
    ats = [phase.at for phase in plan._phases]
    for at in ats:
        if not isinstance(at, int) and at[1] >= plan.sub_epochs:
            cure = f"name one of the plan's {plan.sub_epochs} sub-epochs"
            raise wrong("at's sub_epoch", f"below {plan.sub_epochs}", at[1], cure)
    if partition.by_place and not plan.order.constant_num_units:
        user = plan.remainder if partition.policy.crosses else "a phase at a stream place"
        cure = "use another remainder, and phases at (epoch, sub_epoch)"
        rule = "needs an order with the same number of units in every epoch"
        raise IndexPlanError(user, rule, plan.order.algorithm, cure)
    for before, after in pairwise(ats):
        if isinstance(before, int) == isinstance(after, int):
            ordered = before < after  # type: ignore[operator]  # both of one kind
        else:
            units = plan.order.num_units(0)
            ordered = partition.place(before, units) < partition.place(after, units)
        if not ordered:
            rule = "rising from phase to phase"
            cure = "sort the phases by their place, and keep one at each"
            raise wrong("at", rule, (before, after), cure)


def changed(plan: Plan, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a plan with some of them changed, and not resumed."""
    known = {field.name: getattr(plan, field.name) for field in fields(plan)}
    for name in changes:
        if name not in known or name == "_resumed":
            names = ", ".join(name for name in known if name != "_resumed")
            cure = "check the spelling, or use plan.resume(cursor)"
            raise wrong("a changed field", f"one of {names}", name, cure)
    if ("batch_size" in changes) != ("global_batch_size" in changes):
        known["batch_size"] = known["global_batch_size"] = None
    return {**known, "_resumed": None, **changes}


def to_json_types(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON types."""
    return {
        "partition": PARTITION_VERSION,
        "order": plan.order.to_dict(),
        "world_size": plan.world_size,
        "batch_size": _batch_size_to_json(plan.batch_size),
        "global_batch_size": _batch_size_to_json(plan.global_batch_size),
        "sub_epochs": plan.sub_epochs,
        "remainder": plan.remainder,
        # left out if there is none, as in plans from before there was balance
        **({} if plan.balance is None else {"balance": plan.balance.to_dict()}),
        "resumed": plan._resumed._asdict() if plan._resumed else None,
    }


def from_json_types(
    data: Any, names: list[str], order: Order | None, columns: Columns
) -> dict[str, Any]:
    """Return the fields of the plan that `to_json_types` described, or raise `IndexPlanError`."""
    if not isinstance(data, Mapping):
        raise wrong("a plan", "an object", data, "pass what to_dict returned")
    names = [name for name in names if name != "balance" or name in data]
    check_fields("a plan", data, ["partition", *names])
    if not isinstance(data["partition"], str) or data["partition"] != PARTITION_VERSION:
        cure = "read it with the version of indexplan that wrote it, or a newer one"
        raise wrong("a plan's partition", PARTITION_VERSION, data["partition"], cure)
    values = {name: data[name] for name in names}
    if order is not None and order.to_dict() != values["order"]:
        cure = "leave order out, or pass one that equals the plan's"
        raise wrong("a plan's order", f"{order.to_dict()}", values["order"], cure)
    values["order"] = order or order_from_dict(values["order"], columns)
    for name in SIZES:
        values[name] = _batch_size_from_json(name, values[name])
    if "balance" in values:
        values["balance"] = Balance.from_dict(values["balance"], columns)
    if values["resumed"] is not None:
        if not isinstance(values["resumed"], Mapping):
            raise wrong(
                "resumed", "an object or null", values["resumed"], "write plans with to_json"
            )
        check_fields("resumed", values["resumed"], Resume._fields)
        values["resumed"] = Resume(**values["resumed"])
    values["_resumed"] = values.pop("resumed")
    return values


def _batch_size_to_json(value: Any) -> Any:
    if isinstance(value, tuple) and isinstance(value[0], Phase):
        return [phase.to_dict() for phase in value]
    return None if value is None else size_to_json(value)


def _batch_size_from_json(name: str, value: Any) -> Any:
    if isinstance(value, str):  # what a user may write, but to_json never does
        raise wrong(name, "a size or a list of phases", value, "write plans with to_json")
    if not isinstance(value, list) or not any(isinstance(item, Mapping) for item in value):
        return value
    phases = []
    for item in value:
        if not isinstance(item, Mapping):
            raise wrong("a phase", "an object", item, "write plans with to_json")
        check_fields("a phase", item, ("at", "size", "parameters"))
        if not isinstance(item["parameters"], Mapping):
            raise wrong("parameters", "an object", item["parameters"], "write plans with to_json")
        phases.append(Phase(**item))
    return phases
