"""The identity of a dataset: its number of samples, and what shows that it has changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, Protocol

from indexplan.canonical import canonical_json, check_fields
from indexplan.errors import (
    IndexPlanError,
    PlanFileError,
    counted,
    cure_of,
    integer,
    invalid,
    path_text,
)
from indexplan.shards.by_file import npy_header

AS_RETURNED = "pass what to_dict returned, or restore the file that it comes from"

_FIELDS: dict[str, tuple[type, ...]] = {
    "kind": (str,),
    "pattern": (str, type(None)),
    "num_samples": (int,),
    "num_bytes": (int,),
    "names_sha256": (str, type(None)),
    "sizes_sha256": (str, type(None)),
    "header": (str, type(None)),
}
# what the hashes say where they differ
_CHANGED = {
    "names_sha256": "files were added, removed or renamed",
    "sizes_sha256": "sizes of files changed",
}


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """The identity of a dataset, from which a plan directory notices that the dataset has changed.

    Make one with `Dataset.scan`, and pass it to `save`.

    Parameters
    ----------
    kind : str
        "folder": files, where sample i is the i-th by relative name; "npy": the rows of a `.npy`
        file; "parquet shards" and the like: the `identity` of `Shards`.
    pattern : str or None
        Which files of a folder are samples.
    num_samples, num_bytes : int
        The number of files or rows, and the bytes of all files together.
    names_sha256, sizes_sha256 : str or None
        Hashes of a folder's relative names, and of its files' sizes in bytes.
    header : str or None
        A `.npy` file's dtype, shape and memory order; for shards, the number of their footers, and
        the hash of these.
    names : tuple of str
        A folder's relative names by index. Not part of the identity, and not saved.

    Examples
    --------
    >>> import indexplan as ip, numpy
    >>> numpy.save("data.npy", numpy.zeros((1000, 4)))
    >>> dataset = ip.Dataset.scan("data.npy")
    >>> dataset.num_samples
    1000
    >>> saved = ip.save(ip.Plan(ip.Shuffle(1000), batch_size=8), "data.plan", dataset=dataset)
    """

    kind: str
    pattern: str | None
    num_samples: int
    num_bytes: int
    names_sha256: str | None
    sizes_sha256: str | None
    header: str | None
    names: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @classmethod
    def scan(cls, path: str | os.PathLike[str], pattern: str = "**/*") -> Dataset:
        """Return the identity of the dataset at `path`.

        Parameters
        ----------
        path : str or path-like
            A folder, whose files that match `pattern` are the samples; or a `.npy` file, whose rows
            are the samples. Only names, sizes and the `.npy` header are read, not the contents.
        pattern : str, default "**/*"
            As for `pathlib.Path.glob`, but without "..". Hidden files count if it matches them.

        Raises
        ------
        IndexPlanError
            If there is no such dataset, it has no samples, or the file cannot be read, or a folder
            that the pattern reaches.
        """
        root = Path(path_text("dataset", path, "pass where the folder or the .npy file is"))
        if not isinstance(pattern, str):
            raise invalid("pattern", "a glob", pattern, "write it as '**/*.jpg'")
        if ".." in PurePath(pattern).parts:
            rule, cure = "a glob that stays in the folder", "name the folder itself as the dataset"
            raise invalid("pattern", rule, pattern, cure)
        try:
            if root.is_dir():
                return cls._scan_folder(root, pattern)
            if root.suffix == ".npy":
                return cls._scan_npy(root)
        except OSError as error:
            got = f"{error.strerror!r} at {error.filename or path}"
            cure = cure_of(error, "check the path and its permissions")
            raise IndexPlanError("dataset", "must be readable", got, cure) from error
        raise invalid(
            "dataset", "a folder or a .npy file", str(path), "check the path, or pass the folder"
        )

    @classmethod
    def _scan_folder(cls, root: Path, pattern: str) -> Dataset:
        parts = PurePath(pattern).parts
        try:
            found = [file for file in root.glob(pattern) if file.is_file()]
            for stop in range(len(parts)):  # a glob passes over folders that it may not list
                for folder in root.glob(str(PurePath(*parts[:stop]))) if stop else [root]:
                    if folder.is_dir():
                        os.scandir(folder).close()
        except (ValueError, NotImplementedError, IndexError, RecursionError) as error:
            got, cure = f"{pattern!r} ({error})", "write it as '**/*.jpg', relative to the folder"
            raise IndexPlanError("pattern", "must be a glob", got, cure) from None
        files = sorted((file.relative_to(root).as_posix(), file.stat().st_size) for file in found)
        if not files:
            cure = "check both, or leave it out for all files"
            raise invalid("pattern", f"one that matches files of {root}", pattern, cure)
        names = tuple(name for name, _ in files)
        sizes = [size for _, size in files]
        return cls(
            kind="folder",
            pattern=pattern,
            num_samples=len(files),
            num_bytes=sum(sizes),
            names_sha256=_sha256("\0".join(names)),
            sizes_sha256=_sha256(canonical_json(sizes)),
            header=None,
            names=names,
        )

    @classmethod
    def _scan_npy(cls, file: Path) -> Dataset:
        with file.open("rb") as stream:
            try:
                shape, fortran, dtype = npy_header(stream)
            except OSError:
                raise
            except Exception as error:  # NumPy evaluates headers as Python, which raises anything
                got = str(error).partition("\n")[0]
                cure = "if it holds raw numbers, pass its folder; else write it with numpy.save"
                raise IndexPlanError(file, "must be a .npy file", f"{got!r}", cure) from None
            size = os.fstat(stream.fileno()).st_size
        if not shape or not shape[0]:
            cure = "check that it is the dataset"
            raise invalid(f"{file}", "an array with at least one row", shape, cure)
        order = "column-major" if fortran else "row-major"
        header = (
            f"dtype {dtype.str if dtype.names is None else dtype.descr}, shape {shape}, {order}"
        )
        return cls(
            kind="npy",
            pattern=None,
            num_samples=shape[0],
            num_bytes=size,
            names_sha256=None,
            sizes_sha256=None,
            header=header,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the identity as JSON types."""
        return {name: getattr(self, name) for name in _FIELDS}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Dataset:
        """Return the identity that `to_dict` described, or raise `IndexPlanError`."""
        if not isinstance(data, Mapping):
            raise invalid("a dataset", "an object", data, AS_RETURNED)
        check_fields("a dataset", data, _FIELDS, AS_RETURNED)
        for name, kinds in _FIELDS.items():
            if type(data[name]) not in kinds:
                rule = " or ".join(kind.__name__ for kind in kinds)
                raise invalid(f"a dataset's {name}", rule, data[name], AS_RETURNED)
        integer("a dataset's num_samples", data["num_samples"], 1, 2**63, AS_RETURNED)
        return cls(**data)

    def check_same(self, built_for: Dataset) -> None:
        """Raise `PlanFileError`, saying what changed, unless this equals the dataset of a plan."""
        if not isinstance(built_for, Dataset):
            raise invalid("built_for", "a Dataset", built_for, "pass what Dataset.scan returned")
        if self == built_for:
            return
        changes = []
        for name in _FIELDS:
            was, now = getattr(built_for, name), getattr(self, name)
            said = _CHANGED.get(name, f"its {name} was {was}, and is {now}")
            if name.startswith("num_"):
                said = f"it had {counted(was, name[4:-1])}, has {now:,}"
            if was != now:
                changes.append(said)
        raise PlanFileError(
            "dataset",
            "must be the one that the plan was built for",
            f"another: {'; '.join(changes)}",
            "restore the dataset, or build a new plan for this one",
        )


class Identified(Protocol):
    """Something with the identity of a dataset, such as `Shards`."""

    @property
    def identity(self) -> Dataset:
        """The identity that a plan directory stores."""


def dataset_of(dataset: Any) -> Dataset | None:
    """Return a `Dataset` as it is, or the identity of `Shards`, or None.

    Raises
    ------
    IndexPlanError
        If it is none of these.
    """
    if dataset is None or isinstance(dataset, Dataset):
        return dataset
    identity = getattr(dataset, "identity", None)
    if not isinstance(identity, Dataset):
        cure = "pass indexplan.Dataset.scan(path), or indexplan.shard_sizes(path)"
        raise invalid("dataset", "a Dataset, or Shards", dataset, cure)
    return identity


def _sha256(text: str) -> str:
    # surrogateescape, as names on disk are bytes that need not be UTF-8
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
