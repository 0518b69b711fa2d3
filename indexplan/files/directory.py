"""What a plan directory is a build of, and the sizes of its files: what opening finds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from indexplan.canonical import parse_json_object
from indexplan.errors import IndexPlanError, PlanFileError, in_file
from indexplan.files.columns import identities, num_bytes
from indexplan.files.format import CURE, HEADER_BYTES, INDICES, PLAN, Build, Key, hashes_bytes
from indexplan.stores.store import Store


def build_in(store: Store) -> Build:
    """Return what `plan.json` says; `PlanFileError` if there is none, or it is wrong."""
    if not store.has(PLAN):
        got, cure = store.kind(), "check the path"
        if got == "nothing there":  # else a build would refuse the path
            cure += ", or build it with `indexplan build`"
        got = f"a folder without {PLAN}" if got == "a folder" else got
        raise PlanFileError(store.path, "must be a plan directory", got, cure)
    text = store.read(PLAN)
    try:
        build = Build.from_dict(parse_json_object(PLAN, text, CURE))
        build.check_num_chunks()
        identities(build.spec)
    except IndexPlanError as error:
        raise in_file(store.path, error) from error
    return build


def sizes_in(store: Store, build: Build) -> dict[Key, int]:
    """Return the bytes of each chunk file, if all files are there and have their sizes.

    None of them is read. What bins hold does not follow from `plan.json`: how many samples there
    are in a chunk of them is as its file says, which is checked when that is read.

    Raises
    ------
    PlanFileError
        If a file is missing or has an impossible size.
    """
    columns = identities(build.spec)

    def names() -> Iterator[str]:
        for chunk in build.chunks():
            yield chunk.name
            yield chunk.hashes_name
        yield from columns

    found = store.sizes(names())

    def look(name: str) -> int:
        # the first that is missing ends it: an edited plan.json may claim millions of files
        if (size := next(found)) is None:
            rule = f"must have all of its {1 + 2 * build.num_chunks + len(columns)} files"
            cure = "run the same build again, or each of its parts"
            raise PlanFileError(store.path, rule, f"none named {name}", cure)
        return size

    def check(name: str, size: int, right: int) -> None:
        if size != right:  # builders keep what is there, and refuse it where it is wrong
            cure = "restore it, or delete it and run the same build again"
            raise PlanFileError(f"{store.path}/{name}", f"must hold {right} bytes", size, cure)

    sizes: dict[Key, int] = {}
    samples = 0
    for chunk in build.chunks():
        sizes[chunk.key] = size = look(chunk.name)
        check(chunk.name, size, build.num_bytes(chunk, samples, size))
        samples = (size - HEADER_BYTES) // build.itemsize if chunk.kind == INDICES else samples
        check(chunk.hashes_name, look(chunk.hashes_name), hashes_bytes(size))
    for name, identity in columns.items():
        check(name, look(name), num_bytes(identity))
    return sizes


def check_digest(store: Store, expected: str) -> None:
    """Raise `PlanFileError` unless the plan that is there now has this digest."""
    found = "none"
    with suppress(IndexPlanError):  # a damaged plan.json is not the expected one either
        found = build_in(store).sha256
    if found != expected:
        raise replaced(store.path, expected, found)


def replaced(path: str, expected: str, found: str) -> PlanFileError:
    """Return an error about a plan that was opened, and has another digest now."""
    return PlanFileError(
        path,
        f"must still hold the plan that was opened, of the sha256 {expected:.16}...",
        f"{found:.16}...",
        "open it again, and give every plan a path of its own",
    )
