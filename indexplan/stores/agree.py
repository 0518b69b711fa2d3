"""How builders that run again, or at once, agree on what a place is for and what its files hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from indexplan.canonical import canonical_json, parse_json_object
from indexplan.errors import IndexPlanError, PlanFileError, difference_in_words, in_file
from indexplan.stores.publish import explained
from indexplan.stores.store import Store

# fields of plan.json and export.json that follow from the others
DERIVED = (
    *("num_samples", "traits", "stream_key", "num_units", "sha256"),
    *("dtype", "plan_fingerprint"),
)


def claim(
    store: Store,
    marker: str,
    what: str,
    content: dict[str, Any],
    rule: str,
    cure: str = "choose another path",
) -> None:
    """Make a place, and write to its file `marker` what it is for.

    `what` names such places in errors, and `rule` says what one must be. Another builder may have
    been there first, with the same content.

    Raises
    ------
    PlanFileError
        If the place cannot be written, holds anything but not that file, or the file says another
        thing, or is not JSON.
    """
    new, other = f"must be new, empty or {what}", "choose another path"
    store.make()
    if store.kind() == "a file":
        raise PlanFileError(store.path, new, "a file", other)
    if not store.has(marker):
        # those that are not hidden, as temporary files and those of file managers are
        names = [name for name in store.names() if not name.startswith(".")]
        if names and not store.has(marker):  # after the names, as another builder may be at work
            raise PlanFileError(store.path, new, f"a folder that holds {min(names)}", other)
    store.publish(marker, [canonical_json(content).encode()])
    # read back even if it was published: in some stores a later writer replaces what is there
    try:
        restore = "restore the file, or choose another path"
        there = parse_json_object(marker, store.read(marker), restore)
    except PlanFileError:
        raise
    except IndexPlanError as error:
        raise in_file(store.path, error) from None
    if canonical_json(there) != canonical_json(content):
        said = difference_in_words(there, content, DERIVED) or "other fields"
        raise PlanFileError(store.path, rule, f"one with {said[:1000]}", cure)


def put(
    store: Store,
    name: str,
    blocks: Callable[[], Iterable[memoryview]],
    rule: str,
    again: str,
) -> bool:
    """Write a file, or compare the one that is there, as another builder's; return whether it was.

    `rule` says in an error what the file has to hold, and `again` what to run when it is deleted.

    Raises
    ------
    PlanFileError
        If it cannot be written or read, or holds anything else.
    """
    if not store.has(name) and store.publish(name, blocks()):
        return False
    if got := difference(store, name, blocks()):
        cure = f"delete the file and run the same {again} again"
        raise PlanFileError(f"{store.path}/{name}", rule, got, cure)
    return True


def difference(store: Store, name: str, blocks: Iterable[memoryview]) -> str:
    """Return how a file differs from the blocks that belong there, in words; "" if it does not.

    Raises
    ------
    PlanFileError
        If the file cannot be read.
    """
    path = f"{store.path}/{name}"
    with explained("readable", path):
        stream = store.open(name)
    with stream:
        for number, block in enumerate(blocks):
            with explained("readable", path):
                found = stream.read(len(block))
            if found != block:
                return f"other bytes in block {number}"
        with explained("readable", path):
            return "more bytes" if stream.read(1) else ""
