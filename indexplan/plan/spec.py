"""What a plan is made of: its fields, their rules, and their JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from indexplan.canonical import canonical_json, check_fields, parse_json_object
from indexplan.errors import IndexPlanError, whole, wrong
from indexplan.once import once
from indexplan.orders.base import Order
from indexplan.orders.columns import Columns
from indexplan.orders.registry import order_from_dict
from indexplan.partition.remainders import REMAINDERS
from indexplan.partition.schedule import SIZE_STOP, Phase, Size, as_phases, size_to_json
from indexplan.partition.steps import Partition, Resume
from indexplan.plan.cursor import Cursor

if TYPE_CHECKING:
    from typing_extensions import Self

WORLD_STOP = 2**31
PARTITION_VERSION = "partition-v1"  # other batches from the same fields would be another version


@dataclass(frozen=True)
class Spec:
    """The fields of a `Plan`, checked once, here."""

    order: Order
    _: KW_ONLY
    world_size: int | None = None
    batch_size: Size | Sequence[Phase] | None = None
    global_batch_size: Size | Sequence[Phase] | None = None
    sub_epochs: int = 1
    remainder: str = "spread"
    resumed: Resume | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.order, Order):
            raise wrong("order", "an Order", self.order, "pass indexplan.Shuffle(len(dataset))")
        if self.world_size is not None:
            cure = "leave it out to keep it open"
            self._set("world_size", whole("world_size", self.world_size, 1, WORLD_STOP, cure))
        cure = "leave it out for one sub-epoch an epoch"
        self._set("sub_epochs", whole("sub_epochs", self.sub_epochs, 1, 2**63, cure))
        if not isinstance(self.remainder, str) or self.remainder not in REMAINDERS:
            rule = f"one of {', '.join(REMAINDERS)}"
            raise wrong("remainder", rule, self.remainder, "leave it out for spread")
        phases = self.phases
        for name in ("batch_size", "global_batch_size"):
            if getattr(self, name) is not None:
                plain = len(phases) == 1 and not phases[0].parameters
                self._set(name, phases[0].size if plain else phases)
        if self.resumed is not None:
            if not isinstance(self.resumed, Resume):
                raise wrong("resumed", "a Resume", self.resumed, "use plan.resume(cursor)")
            place = self.resumed._asdict()
            cursor = Cursor(**place, order=self.order.to_dict(), sub_epochs=self.sub_epochs)
            self._set("resumed", self._checked(cursor))
        self._check_phases()

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @once
    def phases(self) -> tuple[Phase, ...]:
        """The phases of the schedule; a single one where the batch size is constant."""
        given = [n for n in ("batch_size", "global_batch_size") if getattr(self, n) is not None]
        if len(given) != 1:
            rule = "exactly one of batch_size and global_batch_size must be given"
            got = "both" if given else "neither"
            cure = "batch_size counts a rank's units, global_batch_size all ranks'"
            raise IndexPlanError(f"{rule}; got {got}; {cure}")
        phases = as_phases(given[0], getattr(self, given[0]))
        if len(phases) == 1 and not phases[0].parameters:
            return (Phase(size=phases[0].size),)  # one value for what means the same
        return phases

    @once
    def _partition(self) -> Partition:
        """The numbers that the partition needs; without sizes where they are open."""
        ranks = self.world_size if self.global_batch_size is None else 1
        sizes = tuple(phase.num_units * ranks for phase in self.phases) if ranks else ()
        for size in sizes:
            whole("batch_size * world_size", size, 1, SIZE_STOP, "use smaller batches")
        return Partition(
            world_size=self.world_size,
            ats=tuple(phase.at for phase in self.phases),
            sizes=sizes,
            sub_epochs=self.sub_epochs,
            remainder=self.remainder,
            resume=self.resumed,
        )

    def _check_phases(self) -> None:
        partition = self._partition
        ats = [phase.at for phase in self.phases]
        for at in ats:
            if not isinstance(at, int) and at[1] >= self.sub_epochs:
                cure = f"name one of the plan's {self.sub_epochs} sub-epochs"
                raise wrong("at's sub_epoch", f"below {self.sub_epochs}", at[1], cure)
        if partition.by_place and not self.order.constant_num_units:
            user = self.remainder if partition.policy.crosses else "a phase at a stream place"
            cure = "use another remainder, and phases at (epoch, sub_epoch)"
            rule = f"{user} needs an order with the same number of units in every epoch"
            raise IndexPlanError(f"{rule}; got {self.order.algorithm}; {cure}")
        for before, after in pairwise(ats):
            if isinstance(before, int) == isinstance(after, int):
                ordered = before < after  # type: ignore[operator]  # both of one kind
            else:
                units = self.order.num_units(0)
                ordered = partition.place(before, units) < partition.place(after, units)
            if not ordered:
                rule = "strictly increasing from phase to phase"
                cure = "sort the phases by their place, and keep one at each"
                raise wrong("at", rule, (before, after), cure)

    def _checked(self, cursor: Cursor) -> Resume:
        """Return where a run of this plan goes on after `cursor`, or raise `IndexPlanError`."""
        return cursor.checked(self.order, self.sub_epochs)

    def replace(self, **changes: Any) -> Self:
        """Return a plan with some fields changed, and not resumed.

        Giving one of `batch_size` and `global_batch_size` takes the other's place.

        Raises
        ------
        IndexPlanError
            If a name is not a field, or a value breaks its rule.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.Shuffle(1000), world_size=8, batch_size=16)
        >>> plan.replace(world_size=12, global_batch_size=128).num_steps(epoch=0)
        8
        """
        if not changes:
            return self
        known = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in changes:
            if name not in known or name == "resumed":
                names = ", ".join(name for name in known if name != "resumed")
                cure = "check the spelling; plan.resume sets resumed"
                raise wrong("a changed field", f"one of {names}", name, cure)
        if ("batch_size" in changes) != ("global_batch_size" in changes):
            known["batch_size"] = known["global_batch_size"] = None
        return type(self)(**{**known, "resumed": None, **changes})

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON types."""
        return {
            "partition": PARTITION_VERSION,
            "order": self.order.to_dict(),
            "world_size": self.world_size,
            "batch_size": _batch_size_to_json(self.batch_size),
            "global_batch_size": _batch_size_to_json(self.global_batch_size),
            "sub_epochs": self.sub_epochs,
            "remainder": self.remainder,
            "resumed": self.resumed._asdict() if self.resumed else None,
        }

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], *, order: Order | None = None, columns: Columns = None
    ) -> Self:
        """Return the plan that `to_dict` described.

        Parameters
        ----------
        data : mapping
            What `to_dict` returned.
        order : Order, optional
            An order that equals the one described, to be used as it is.
        columns : folder, or iterable of columns, arrays and paths, optional
            Where the order's columns are found, which a plan knows by their sha256: a folder has
            them as `<sha256>.npy`, as the folder `columns` of a plan directory does.

        Raises
        ------
        IndexPlanError
            If a field is missing, unknown or breaks its rule, or a column is not there.
        """
        names = [field.name for field in fields(cls)]
        if not isinstance(data, Mapping):
            raise wrong("a plan", "an object", data, "pass what to_dict returned")
        check_fields("a plan", data, ["partition", *names])
        if not isinstance(data["partition"], str) or data["partition"] != PARTITION_VERSION:
            cure = "read it with the version of indexplan that wrote it, or a newer one"
            raise wrong("a plan's partition", PARTITION_VERSION, data["partition"], cure)
        values = {name: data[name] for name in names}
        if order is not None and order.to_dict() != values["order"]:
            cure = "leave order out, or pass one that equals the plan's"
            raise wrong("a plan's order", f"{order.to_dict()}", values["order"], cure)
        values["order"] = order or order_from_dict(values["order"], columns)
        for name in ("batch_size", "global_batch_size"):
            values[name] = _batch_size_from_json(values[name])
        if values["resumed"] is not None:
            if not isinstance(values["resumed"], Mapping):
                cure = "write plans with to_json"
                raise wrong("resumed", "an object or null", values["resumed"], cure)
            check_fields("resumed", values["resumed"], Resume._fields)
            values["resumed"] = Resume(**values["resumed"])
        return cls(**values)

    def to_json(self) -> str:
        """Return the plan as canonical JSON text, which the fingerprint is taken of."""
        return canonical_json(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes, *, columns: Columns = None) -> Self:
        """Return the plan that `to_json` wrote, or raise `IndexPlanError` as `from_dict` does.

        `columns` is what `from_dict` takes.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.Shuffle(1000), batch_size=(5, 3))
        >>> ip.Plan.from_json(plan.to_json()) == plan
        True
        """
        return cls.from_dict(parse_json_object("a plan", text), columns=columns)

    @property
    def fingerprint(self) -> str:
        """The sha256, in hexadecimal, of the plan's canonical JSON, its algorithms inside.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.Shuffle(13, seed=1), world_size=2, batch_size=2)
        >>> plan.fingerprint[:16]
        '648eb67880a0635d'
        """
        return hashlib.sha256(self.to_json().encode()).hexdigest()


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
            raise wrong("a phase", "an object", item, "write plans with to_json")
        check_fields("a phase", item, ("at", "size", "parameters"))
        if not isinstance(item["parameters"], Mapping):
            raise wrong("parameters", "an object", item["parameters"], "write plans with to_json")
        phases.append(Phase(**item))
    return phases
