"""The lines of a ledger (ledger-v1): canonical JSON, each with the sha256 of the line before.

A line starts with a checksum of its own, as no later line vouches for the last one. Lines are
numbered from 1, as editors do.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from indexplan.canonical import canonical_json, check_fields, parse_json_object
from indexplan.errors import integer, invalid
from indexplan.ledger.walking import LINE_PARTS
from indexplan.partition.steps import Resume
from indexplan.plan.spec import WORLD_STOP, names_in
from indexplan.seeds import EPOCH_STOP

VERSION = "ledger-v1"
FIRST = hashlib.sha256(VERSION.encode()).hexdigest()  # what comes before the first line
CURE = "restore the ledger from a copy; the lines before this one are whole"
LONGEST = 2**26  # bytes of a line; columns, such as weights, are in files of their own
MOST_BYTES = 2**30  # of a file: 5 million lines of steps
_CHECKED = len('{"check":"01234567",')
_FIELDS = {
    "plan": ("plan", "data"),
    "run": ("plan", "step", "steps", "from", "to"),
    "discard": ("step",),
}


class PlanLine(NamedTuple):
    """A plan, the first time that a run reads it: closed and not resumed.

    `data` is the identity of its dataset, as earlier versions could write it, or None.
    """

    plan: dict[str, Any]
    data: dict[str, Any] | None


class RunLine(NamedTuple):
    """Steps that one plan read without a break; `plan` is the number of its line."""

    plan: int
    step: int  # the run's first step of these
    steps: int
    start: Resume
    stop: Resume
    note: dict[str, Any]


class DiscardLine(NamedTuple):
    """A return to a checkpoint: steps from `step` on are void."""

    step: int


Line: TypeAlias = "PlanLine | RunLine | DiscardLine"


def text_of(line: Line, previous: str) -> bytes:
    """Return a line's bytes, without its line end, after one of that sha256."""
    rest = canonical_json({**_data_of(line), "previous": previous})[1:]
    return f'{{"check":"{zlib.crc32(rest.encode()):08x}",{rest}'.encode()


def sha256_of(text: bytes) -> str:
    """Return what the next line has as `previous`."""
    return hashlib.sha256(text).hexdigest()


def _data_of(line: Line) -> dict[str, Any]:
    if isinstance(line, PlanLine):
        return {"kind": "plan", "plan": line.plan, "data": line.data}
    if isinstance(line, DiscardLine):
        return {"kind": "discard", "step": line.step}
    written = {"from": line.start, "to": line.stop, "note": line.note}
    if not line.note:
        del written["note"]  # most have none
    return {"kind": "run", "plan": line.plan, "step": line.step, "steps": line.steps, **written}


def line_of(text: bytes, previous: str) -> Line:
    """Return what a line says, if it is whole and follows one of that sha256.

    Raises
    ------
    IndexPlanError
        If it is not.
    """
    if text[_CHECKED:] and text[:_CHECKED] != _checksum(text):
        got = text[:_CHECKED].decode(errors="replace")
        raise invalid("its checksum", _checksum(text).decode()[10:18], got, CURE)
    data = parse_json_object("a line", text, CURE)
    data.pop("check", None)
    if data.pop("previous", None) != previous:
        rule = f"the sha256 of the line before, {previous[:16]}..., or of {VERSION}"
        raise invalid("previous", rule, _previous(text), CURE)
    kind = data.pop("kind", None)
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise invalid("kind", f"one of {', '.join(_FIELDS)}", kind, CURE)
    note = data.pop("note", {}) if kind == "run" else {}
    check_fields(f"a line of kind {kind}", data, _FIELDS[kind], CURE)
    if kind == "plan":
        for name, other in (("plan", {}), ("data", None)):
            if not isinstance(data[name], dict | type(other)):
                raise invalid(name, "an object", data[name], CURE)
        _check_plan(data["plan"])
        return PlanLine(**data)
    step = _number("step", data["step"], 0)
    if kind == "discard":
        return DiscardLine(step)
    if not isinstance(note, dict):
        raise invalid("note", "an object", note, CURE)
    start, stop = _place("from", data["from"]), _place("to", data["to"])
    if stop.unit <= start.unit or stop.epoch - start.epoch > LINE_PARTS:
        rule = f"after from, by at most {LINE_PARTS} epochs"
        raise invalid("to", rule, list(stop), CURE)
    plan, steps = _number("plan", data["plan"]), _number("steps", data["steps"])
    return RunLine(plan, step, steps, start, stop, note)


def checked_note(note: Any) -> dict[str, Any]:
    """Return what a user notes about steps, if it is of JSON types."""
    cure = "pass a dict such as {'global_step': 500}"
    if note is None:
        return {}
    try:
        text = canonical_json(dict(note)) if isinstance(note, Mapping) else ""
        same = bool(text) and json.loads(text) == note
    except (TypeError, ValueError, RecursionError):
        same = False
    if not same:
        raise invalid("note", "a dict of JSON types", note, cure)
    return parse_json_object("note", text, cure)


def _checksum(text: bytes) -> bytes:
    return b'{"check":"%08x",' % zlib.crc32(text[_CHECKED:])


def _previous(text: bytes) -> Any:
    return json.loads(text).get("previous")


def _number(name: str, value: Any, start: int = 1) -> int:
    return integer(name, value, start, 2**96, CURE)


def _check_plan(plan: dict[str, Any]) -> None:
    """Raise `IndexPlanError` unless a plan has what is read of it before it is made."""
    names_in(plan)
    integer("a plan's world_size", plan["world_size"], 1, WORLD_STOP, CURE)
    integer("a plan's sub_epochs", plan["sub_epochs"], 1, 2**63, CURE)
    order, resumed = plan["order"], plan["resumed"]
    if resumed is not None:
        raise invalid("a plan's resumed", "null, as its steps say where they start", resumed, CURE)
    if not isinstance(order, dict) or not isinstance(order.get("algorithm"), str):
        raise invalid("a plan's order", "the dict form of an order", order, CURE)


def _place(name: str, value: Any) -> Resume:
    if not isinstance(value, list) or len(value) != 4:
        raise invalid(name, "[epoch, sub_epoch, step, position]", value, CURE)
    integer(f"{name}'s epoch", value[0], 0, EPOCH_STOP + 1, CURE)
    for number in value[1:]:
        integer(f"a number of {name}", number, 0, 2**63, CURE)
    return Resume(*value)
