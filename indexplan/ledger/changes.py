"""Why one plan of a run follows another: what changed between their dict forms, in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WORDS = ("world", "batch", "exclude", "weights", "sources", "order")
_LAYERS = {"without-v1": "exclude"}
_BATCH = ("batch_size", "global_batch_size", "sub_epochs", "remainder", "balance")


def why(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what changed: the number of ranks, the batches, or what of the order.

    Parameters
    ----------
    before, after : mapping
        What `Plan.to_dict` returned.
    """
    found = set(_of_orders(before["order"], after["order"]))
    if before["world_size"] != after["world_size"]:
        found.add("world")
    if any(before.get(name) != after.get(name) for name in _BATCH):
        found.add("batch")
    return tuple(word for word in WORDS if word in found)


def _of_orders(before: Any, after: Any) -> set[str]:
    """Return what changed of an order, layer by layer from outside."""
    if before == after:
        return set()
    both = isinstance(before, Mapping) and isinstance(after, Mapping)
    names = [str(each.get("algorithm")) for each in (before, after)] if both else ["", ""]
    if names[0] == names[1] and names[0] in _LAYERS:
        changed = {_LAYERS[names[0]]} if _own(before) != _own(after) else set()
        return changed | _of_orders(before.get("order"), after.get("order"))
    if names[1] in _LAYERS:
        return {_LAYERS[names[1]]} | _of_orders(before, after.get("order"))
    if names[0] in _LAYERS:
        return {_LAYERS[names[0]]} | _of_orders(before.get("order"), after)
    if both and names[0] == names[1] and "sources" in before and "sources" in after:
        found = {"sources"} if before["sources"] != after["sources"] else set()
        same = [{k: v for k, v in each.items() if k != "sources"} for each in (before, after)]
        return found | ({"weights"} if same[0] != same[1] else set())
    return {"order"}


def _own(layer: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in layer.items() if name != "order"}
