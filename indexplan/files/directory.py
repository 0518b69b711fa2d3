"""A plan directory as one reader or builder found it: what it is a build of, and its files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from indexplan.canonical import parse_json_object
from indexplan.errors import IndexPlanError, PlanFileError, in_file
from indexplan.files.columns import identities, num_bytes
from indexplan.files.format import (
    CURE,
    HEADER_BYTES,
    PLAN,
    SPANS,
    Build,
    Key,
    hashes_bytes,
)
from indexplan.once import once
from indexplan.stores.store import Store


class PlanDirectory:
    """What a place holds of a plan.

    What it is a build of is read at its first use, and kept. Other builders may add files at any
    time: to see these, make another one, for a new look.

    Parameters
    ----------
    store : Store
        The place.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.path = store.path

    @once
    def build(self) -> Build:
        """What `plan.json` says; `PlanFileError` if there is none, or it is wrong."""
        if not self.store.has(PLAN):
            raise self._none()
        text = self.store.read(PLAN)
        try:
            build = Build.from_dict(parse_json_object(PLAN, text, CURE))
            build.check_num_chunks()
            identities(build.spec)
        except IndexPlanError as error:
            raise in_file(self.path, error) from error
        return build

    @once
    def sizes(self) -> dict[Key, int]:
        """The bytes of each chunk file, if all files are there and have their sizes.

        None of them is read. What bins hold does not follow from `plan.json`: how many samples
        there are in a chunk of them is as its file says, which is checked when that is read.

        Raises
        ------
        PlanFileError
            If the place is no plan directory, is half-built or of another format version, if
            `plan.json` was edited, or if another file is missing or has an impossible size.
        """
        build = self.build
        columns = identities(build.spec)

        def names() -> Iterator[str]:
            for chunk in build.chunks():
                yield chunk.name
                yield chunk.hashes_name
            yield from columns

        def look(name: str) -> int:
            # the first that is missing ends it: an edited plan.json may claim millions of files
            if (size := next(found)) is None:
                rule = f"must have all of its {1 + 2 * build.num_chunks + len(columns)} files"
                cure = "run the same build again, or each of its parts"
                raise PlanFileError(self.path, rule, f"none named {name}", cure)
            return size

        found = self.store.sizes(names())
        sizes: dict[Key, int] = {}
        samples = 0
        for chunk in build.chunks():
            size, hashes = look(chunk.name), look(chunk.hashes_name)
            right = build.num_bytes(chunk)
            if right is None and chunk.kind == SPANS:
                right = HEADER_BYTES + 16 * samples
            elif right is None:
                samples = max(0, size - HEADER_BYTES) // build.itemsize
                right = HEADER_BYTES + build.itemsize * samples
            self._check_size(chunk.name, size, right)
            self._check_size(chunk.hashes_name, hashes, hashes_bytes(size))
            sizes[chunk.key] = size
        for name, identity in columns.items():
            self._check_size(name, look(name), num_bytes(identity))
        return sizes

    def _check_size(self, name: str, found: int, size: int) -> None:
        if found != size:  # builders keep what is there, and refuse it where it is wrong
            cure = "restore it, or delete it and run the same build again"
            raise PlanFileError(f"{self.path}/{name}", f"must hold {size} bytes", found, cure)

    def _none(self) -> PlanFileError:
        """Return an error that says what is there instead of a plan."""
        if (kind := self.store.kind()) != "a folder":
            cure = "check the path"
            if kind == "nothing there":  # else a build would refuse the path
                cure += ", or build it with `indexplan build`"
            return PlanFileError(self.path, "must be a plan directory", kind, cure)
        got = f"a folder without {PLAN}"
        return PlanFileError(self.path, "must be a plan directory", got, "check the path")

    def check_digest(self, expected: str) -> None:
        """Raise `PlanFileError` unless the plan that is there now has this digest."""
        found = "none"
        with suppress(IndexPlanError):  # a damaged plan.json is not the expected one either
            found = self.build.sha256
        if found != expected:
            raise replaced(self.path, expected, found)


def replaced(path: str, expected: str, found: str) -> PlanFileError:
    """Return an error about a plan that was opened, and has another digest now."""
    return PlanFileError(
        path,
        f"must still hold the plan that was opened, of the sha256 {expected:.16}...",
        f"{found:.16}...",
        "open it again, and give every plan a path of its own",
    )
