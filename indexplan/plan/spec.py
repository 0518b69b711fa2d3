"""The rules for the fields of a plan, and plans as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, cast

from indexplan.canonical import check_fields
from indexplan.errors import IndexPlanError, did_you_mean, integer, invalid
from indexplan.keywords import check
from indexplan.orders.base import Order
from indexplan.orders.columns import Columns
from indexplan.orders.extents import extent_of
from indexplan.orders.registry import order_from_dict
from indexplan.partition.phases import SIZE_STOP, Phase, Size, as_phases, size_to_json
from indexplan.partition.remainders import REMAINDERS, Remainder
from indexplan.partition.steps import Partition, Resume
from indexplan.plan.balance import Balance
from indexplan.plan.cursor import check_place
from indexplan.plan.layout import Layout

WORLD_STOP = 2**31
PARTITION_VERSION = "partition-v1"  # other batches from the same fields need another version
SIZES: tuple[Literal["batch_size"], Literal["global_batch_size"]] = (
    "batch_size",
    "global_batch_size",
)


class Changes(TypedDict, total=False):
    """The fields of a plan that `Plan.replace` can change."""

    order: Order
    world_size: int | None
    batch_size: Size | Sequence[Phase] | None
    global_batch_size: Size | Sequence[Phase] | None
    sub_epochs: int
    remainder: Remainder
    balance: Balance | None


class Fields(Changes):
    """The fields of a plan."""

    _resumed: Resume | None


def given_of(plan: Any) -> Fields:
    """Return the fields of a plan."""
    return cast("Fields", {name: getattr(plan, name) for name in Fields.__annotations__})


def normal(given: Fields) -> Fields:
    """Check the fields of a plan, and return their normal form, which is the same for equal plans.

    Raises
    ------
    IndexPlanError
        If a field breaks its rule.
    """
    order, resumed = given["order"], given["_resumed"]
    if not isinstance(order, Order):
        raise invalid("order", "an Order", order, "pass indexplan.Shuffle(len(dataset))")
    if (hidden := order.ip_hidden_cuts) is not None:
        rule = f"True in {hidden[0]}, as {hidden[1]} inside it cuts samples"
        cure = "deal spans too, and set cuts_samples=True in its traits"
        raise invalid("cuts_samples", rule, False, cure)
    written = given.copy()
    if given["world_size"] is not None:
        cure = "leave it out to keep it open"
        written["world_size"] = integer("world_size", given["world_size"], 1, WORLD_STOP, cure)
    cure = "leave it out for one sub-epoch an epoch"
    written["sub_epochs"] = integer("sub_epochs", given["sub_epochs"], 1, 2**63, cure)
    remainder = given["remainder"]
    if not isinstance(remainder, str) or remainder not in REMAINDERS:
        rule = f"one of {', '.join(REMAINDERS)}"
        cure = did_you_mean(remainder, REMAINDERS) + "leave it out for spread"
        raise invalid("remainder", rule, remainder, cure)
    for name in SIZES:
        if given[name] is not None:
            phases = _phases_of(given)
            plain = len(phases) == 1 and not phases[0].parameters
            written[name] = phases[0].size if plain else phases
    if resumed is not None:
        if not isinstance(resumed, Resume):
            raise invalid("resumed", "a Resume", resumed, "use plan.resume(cursor)")
        written["_resumed"] = check_place(resumed, order, written["sub_epochs"])
    return written


def _phases_of(given: Fields) -> tuple[Phase, ...]:
    """Return the phases of a schedule; a single one if the batch size is constant."""
    sizes = {name: given[name] for name in SIZES if given[name] is not None}
    if len(sizes) != 1:
        got = "both" if sizes else "neither"
        cure = "pass batch_size for the units of one rank, or global_batch_size for those of all"
        raise IndexPlanError(
            "exactly one of batch_size and global_batch_size", "must be given", got, cure
        )
    ((name, size),) = sizes.items()
    phases = as_phases(name, size)
    if len(phases) == 1 and phases[0].at == (0, 0) and not phases[0].parameters:
        return (Phase(size=phases[0].size),)  # the same value for what means the same
    return phases


def layout_of(given: Fields) -> Layout:
    """Return the layout that the normal form of a plan's fields describes.

    Raises
    ------
    IndexPlanError
        If a global batch has too many units, the order does not allow the schedule or the
        remainder, or balance does not fit the order.
    """
    phases = _phases_of(given)
    ranks = given["world_size"] if given["global_batch_size"] is None else 1
    sizes = tuple(phase.num_units * ranks for phase in phases) if ranks else ()
    for size in sizes:  # without sizes while they are open
        integer("batch_size * world_size", size, 1, SIZE_STOP, "use smaller batches")
    partition = Partition(
        world_size=given["world_size"],
        ats=tuple(phase.at for phase in phases),
        sizes=sizes,
        sub_epochs=given["sub_epochs"],
        remainder=given["remainder"],
        extent=extent_of(given["order"]),
        resume=given["_resumed"],
    )
    return Layout(given["order"], partition, phases, given["balance"])


def changed(given: Fields, changes: Changes) -> Fields:
    """Return the fields of a plan with some of them changed, and not resumed."""
    known = [name for name in given if name != "_resumed"]
    check("plan.replace", changes, known)
    written = given.copy()
    if ("batch_size" in changes) != ("global_batch_size" in changes):
        written["batch_size"] = written["global_batch_size"] = None
    written["_resumed"] = None
    return cast("Fields", {**written, **changes})


def to_json_types(given: Fields) -> dict[str, Any]:
    """Return a plan as JSON types."""
    balance, resumed = given["balance"], given["_resumed"]
    return {
        "partition": PARTITION_VERSION,
        "order": given["order"].to_dict(),
        "world_size": given["world_size"],
        "batch_size": _batch_size_to_json(given["batch_size"]),
        "global_batch_size": _batch_size_to_json(given["global_batch_size"]),
        "sub_epochs": given["sub_epochs"],
        "remainder": given["remainder"],
        # left out if there is none, so that the fingerprints of most plans do not mention it
        **({} if balance is None else {"balance": balance.to_dict()}),
        "resumed": resumed._asdict() if resumed else None,
    }


def names_in(data: Mapping[str, Any]) -> list[str]:
    """Return the names of the fields of a plan in its dict form; raise if it has others."""
    names = [name.lstrip("_") for name in Fields.__annotations__]
    names = [name for name in names if name != "balance" or name in data]
    check_fields("a plan", data, ["partition", *names])
    if not isinstance(data["partition"], str) or data["partition"] != PARTITION_VERSION:
        cure = "read it with the version of indexplan that wrote it, or a newer one"
        raise invalid("a plan's partition", PARTITION_VERSION, data["partition"], cure)
    return names


def from_json_types(
    data: Mapping[str, Any], order: Order | None, columns: Columns
) -> dict[str, Any]:
    """Return the fields of the plan that `to_json_types` described, or raise `IndexPlanError`."""
    names = names_in(data)
    values = {name: data[name] for name in names}
    if isinstance(order, Order) and order.to_dict() != values["order"]:
        cure = "leave order out, or pass one that equals the plan's"
        raise invalid("a plan's order", f"{order.to_dict()}", values["order"], cure)
    for name in SIZES:
        values[name] = _batch_size_from_json(values[name])
    if values["resumed"] is not None:
        if not isinstance(values["resumed"], Mapping):
            raise invalid(
                "resumed", "an object or null", values["resumed"], "write plans with to_json"
            )
        check_fields("resumed", values["resumed"], Resume._fields)
        values["resumed"] = Resume(**values["resumed"])
    values["order"] = order_from_dict(values["order"], columns) if order is None else order
    if "balance" in values:
        values["balance"] = Balance.from_dict(values["balance"], columns)
    values["_resumed"] = values.pop("resumed")
    return values


def _batch_size_to_json(value: Any) -> Any:
    if isinstance(value, tuple) and isinstance(value[0], Phase):
        return [phase.to_dict() for phase in value]
    return None if value is None else size_to_json(value)


def _batch_size_from_json(value: Any) -> Any:
    if not isinstance(value, list) or not any(isinstance(item, Mapping) for item in value):
        return value
    phases = []
    for item in value:
        if not isinstance(item, Mapping):
            raise invalid("a phase", "an object", item, "write plans with to_json")
        check_fields("a phase", item, ("at", "size", "parameters"))
        if not isinstance(item["parameters"], Mapping):
            raise invalid("parameters", "an object", item["parameters"], "write plans with to_json")
        phases.append(Phase(**item))
    return phases
