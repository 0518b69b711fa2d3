"""What to do about values or files that are no column: usual ones, of seconds, names or counts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from numbers import Integral, Number
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FLAT = "pass numbers in one dimension, or the path of a .npy file of them"
WRITTEN = "write it with np.save"
INTEGERS = "pass integers, such as an int64 array"
NAMES = "number the names: numpy.unique(names, return_inverse=True)[1]"
MISSING = "leave out or fill what is missing, such as None and NaN"
MASK = "pass numpy.flatnonzero(mask)"
# what texts, lists and fractions usually are, by what was asked for
INSTEAD_OF_TEXT = {
    "lengths": "pass how long each is, such as [len(each) for each in values]",
    "sizes": "pass how many samples each shard holds",
    "indices": "pass the numbers of samples, counted from 0",
    "samples": "pass the numbers of samples, counted from 0",
}
OF_TIMES = "numpy.asarray(values, 'timedelta64[ms]').astype(numpy.int64)"
OF_SECONDS = "numpy.round(1000 * numpy.asarray(values)).astype(numpy.int64)"
READERS = {
    ".npz": "pass numpy.load(path)[name], one of its arrays",
    ".json": "pass json.loads(Path(path).read_text()), if it holds numbers",
    ".csv": "pass one of its columns, such as numpy.loadtxt(path, {0}, delimiter=',')",
    ".tsv": "pass one of its columns, such as numpy.loadtxt(path, {0})",
    ".txt": "pass its numbers, such as numpy.loadtxt(path, {0})",
    ".parquet": "pass one of its columns, such as pandas.read_parquet(path)[name]",
}


def cure_of_values(  # noqa: PLR0911 (one for each kind of values)
    what: str, values: Any, array: NDArray[Any] | None, path: str | None, *, floats: bool
) -> str:
    """Return what to do about values of a wrong type or shape; `array` is NumPy's form, if any."""
    if isinstance(values, Mapping):
        return "pass list(values.values()), and keep the keys in that order"
    if isinstance(values, Iterator):
        return "pass list(values)"
    if hasattr(values, "columns"):  # of pandas, Polars or Arrow
        return "pass one of its columns"
    if array is None or array.ndim != 1:
        if array is not None and array.dtype.kind in "US" and what not in INSTEAD_OF_TEXT:
            return NAMES.replace("names, ", "names, axis=0, ")
        return INSTEAD_OF_TEXT["lengths"] if what == "lengths" and path is None else FLAT
    objects = array.tolist() if array.dtype.kind in "OUS" else []
    if any(type(each).__name__ in ("NoneType", "NAType") or each != each for each in objects):  # noqa: PLR0124 (NaN)
        return MISSING
    whole = array.dtype.kind == "U" or all(isinstance(each, Integral) for each in objects)
    if objects and (floats or whole) and _are_numbers(array):
        return f"pass numpy.asarray(values, {'float' if floats else 'numpy.int64'})"
    if objects and all(isinstance(each, str | bytes) for each in objects):
        return INSTEAD_OF_TEXT.get(what, FLAT if floats else NAMES)
    if floats:
        mask = "pass numbers, or keep the samples of a mask with indexplan.Subset"
        return mask if array.dtype == np.bool_ else FLAT
    return _instead_of_fractions(what, array, path)


def _are_numbers(array: NDArray[Any]) -> bool:
    """Return whether objects or texts are numbers: whole ones, if they are texts."""
    if array.dtype.kind == "O":
        return all(isinstance(each, Number) for each in array.tolist())
    return array.dtype.kind == "U" and all(each.lstrip("-").isdecimal() for each in array.tolist())


def _instead_of_fractions(  # noqa: PLR0911 (likewise)
    what: str, array: NDArray[Any], path: str | None
) -> str:
    """Return what to do about floats, times and booleans where integers are needed."""
    if array.dtype == np.bool_ and what in {"indices", "samples"}:
        return MASK
    if array.dtype.kind == "m":
        return f"count milliseconds: {OF_TIMES}"
    if array.dtype.kind == "M":
        return NAMES
    if array.dtype.kind == "f":
        values = "values" if path is None else "numpy.load(path)"
        if not np.isfinite(array).all():
            return MISSING
        if (array == np.floor(array)).all():
            return f"pass numpy.asarray({values}, numpy.int64)"
        if what == "lengths":
            of_seconds = OF_SECONDS.replace("values", values)
            return f"count in smaller units, milliseconds for seconds: {of_seconds}; limits too"
        if what in {"groups", "labels"}:
            return NAMES.replace("names", values).replace(f"the {values}", "them")
    return INTEGERS if array.dtype.kind in "fb" and array.itemsize <= 8 else FLAT


def cure_of_file(path: str, *, floats: bool) -> str:
    """Return what to do about a path that is not that of a `.npy` file."""
    file = Path(path)
    if not os.path.exists(path):  # noqa: PTH110 (which raises nothing for any text)
        return "copy the file to this machine first" if ":/" in path else "check the path"
    if file.is_dir():
        return "pass the path of a file in it"
    if file.suffix in READERS:
        return READERS[file.suffix].format("float" if floats else "int")
    if file.is_file() and not has_header(file):
        return "if it holds raw numbers, pass numpy.memmap(path, dtype, 'r')"
    return WRITTEN


def has_header(file: Path) -> bool:
    """Return whether a file begins as a `.npy` file does."""
    with file.open("rb") as stream:
        return stream.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX
