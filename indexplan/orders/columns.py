"""Columns: arrays of numbers that belong to an order, such as weights, labels or sample lists."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from indexplan.errors import Cure, IndexPlanError, PlanFileError, integer, invalid, path_text
from indexplan.once import once
from indexplan.orders.column_cures import WRITTEN, cure_of_file, cure_of_values, has_header

INTEGERS, FLOATS = "integers", "floats"
TYPES = {INTEGERS: ("<u4", "<i8"), FLOATS: ("<f8",)}  # the last one holds every allowed number
IDENTITY = ("dtype", "length", "sha256")
EXACT = 2**53  # up to here every integer is a float64
AS_THEY_ARE = 20  # values that an error shows; of more, their type and number
LONGEST_RANGE = 2**27  # takes 1 GiB as an array
BLOCK = 2**17  # numbers that are hashed at a time: 1 MiB, which stays in the cache
SPEC = "write specs with to_json"

# whether fields come from JSON, where a string is not a path: the author may be a stranger
_IN_JSON: ContextVar[bool] = ContextVar("_IN_JSON", default=False)

Status: TypeAlias = "tuple[int, ...]"
# a field that takes numbers of any kind, or the path of a file, and keeps them as a column
Kept: TypeAlias = "Column | Any"
Finder: TypeAlias = "Callable[[Mapping[str, Any]], Column | None]"
Columns: TypeAlias = "Finder | str | os.PathLike[str] | Iterable[Any] | None"


class Column:
    """An array of numbers that an order needs, such as weights, identified by its values.

    Orders turn each list, array or file that you pass into a column. Columns with equal numbers are
    equal, wherever the numbers come from. JSON plans, fingerprints and cursors hold only its
    `to_dict()`: dtype, length and sha256. Make one yourself to read and hash a large array only
    once for several orders.

    Parameters
    ----------
    values : array_like, shape (length,), or path
        Integers below 2**63 or floats; or the path of a `.npy` file of them, which is mapped into
        memory. A column made from a path is pickled as the path, one made from an array as the
        array.
    kind : {"integers", "floats"}, optional
        What the values must be; integers are accepted as floats. By default, either.

    Raises
    ------
    IndexPlanError
        If the values are not one-dimensional numbers of that kind, or the file is not a `.npy` of
        them. When the column is hashed or unpickled, if the file has changed.

    Notes
    -----
    The sha256 covers the line "<dtype> <length>" and the numbers, little-endian: integers as "<u4"
    if all are from 0 to 2**32 - 1, else as "<i8"; floats as "<f8", with -0.0 as 0.0. A file with
    one of these dtypes is mapped as it is; numbers of other dtypes are copied.

    Examples
    --------
    >>> import indexplan as ip
    >>> ip.Column([3, 1, 2]) == ip.Column(np.array([3, 1, 2], np.uint8))
    True
    >>> ip.Column([3, 1, 2]).to_dict()["dtype"], len(ip.Column([0.5]))
    ('<u4', 1)
    """

    def __init__(self, values: ArrayLike | str | os.PathLike[str], kind: str | None = None) -> None:
        self._hold("a column", values, kind)

    def _hold(self, what: str, values: Any, kind: str | None) -> None:
        """Check and keep the values, which messages call `what`."""
        if kind is not None and not (isinstance(kind, str) and kind in TYPES):
            raise invalid("kind", f"one of {', '.join(TYPES)}", kind, "leave it out")
        self.path: str | None = None
        self._status: Status | None = None  # of the file, as it was when it was mapped
        if isinstance(values, str | os.PathLike):
            if _IN_JSON.get():
                raise invalid(what, "given in JSON by dtype, length and sha256", values, SPEC)
            path = path_text("a column's path", values, WRITTEN)
            self.path = os.path.abspath(path)  # noqa: PTH100 (Path's resolve follows links)
            self._status, values = _mapped(self.path, kind)
        self._array = _as_column(what, values, kind, self.path)

    @classmethod
    def of(cls, values: Any, kind: str | None = None, what: str = "a column") -> Column:
        """Return values, which messages call `what`, as a column; a column stays as it is."""
        if isinstance(values, Column):
            own = values._array.dtype.str  # noqa: SLF001 (of a column)
            if kind is None or own in TYPES.get(kind, ()):
                return values
            values = values.array if _IN_JSON.get() else values.path or values.array
        column = cls.__new__(cls)
        column._hold(what, values, kind)  # noqa: SLF001 (of a column)
        return column

    @classmethod
    def claimed(
        cls, path: str, identity: Mapping[str, Any], status: Status | None = None
    ) -> Column:
        """Return the column of a file that must have the given identity.

        The file is hashed to check that, unless its `status` is the one given.
        """
        column = cls(path, FLOATS if identity["dtype"] in TYPES[FLOATS] else INTEGERS)
        if column._status != status and column.identity != identity:
            rule = f"must be the column with sha256 {identity['sha256']}"
            got = f"one with sha256 {column.identity['sha256']}"
            cure = "restore the file, which has changed since it was hashed"
            raise PlanFileError(path, rule, got, cure)
        vars(column)["identity"] = dict(identity)
        return column

    @property
    def array(self) -> NDArray[Any]:
        """The numbers, read-only; those of a file are mapped, and refused if it has changed.

        Reading a mapped file that was cut short would kill the process (SIGBUS). So a long-lived
        reader has to ask for the numbers again after a while.
        """
        self.check_file(gone=True)  # 4 us for a file
        return self._array

    @once
    def identity(self) -> dict[str, Any]:
        """The column's dtype, length and sha256, which stand for it in JSON."""
        dtype = self.array.dtype.str
        shorter, longer = TYPES[INTEGERS]
        # as unsigned numbers, negative ones are huge; most arrays with huge ones begin with some
        if dtype == longer and all(each.view("<u8").max() < 2**32 for each in _blocks(self.array)):
            dtype = shorter
        digest = hashlib.sha256(f"{dtype} {len(self)}\n".encode())
        for block in self.blocks(dtype):
            digest.update(block)
        return dict(zip(IDENTITY, (dtype, len(self), digest.hexdigest()), strict=True))

    def blocks(self, dtype: str) -> Iterator[memoryview]:
        """Yield the bytes of the numbers as `dtype`, 1 MiB at a time.

        At the end, raise `IndexPlanError` if the column's file has changed in the meantime.
        """
        for block in _blocks(self.array):
            # + 0.0 changes the bits of one float only: -0.0
            numbers = block + 0.0 if dtype in TYPES[FLOATS] else block.astype(dtype, copy=False)
            yield numbers.data.cast("B")
        self.check_file()

    @contextmanager
    def steady(self, *, gone: bool = False) -> Iterator[NDArray[Any]]:
        """Give the numbers for a while; then `check_file`, whatever error changed ones gave."""
        try:
            yield self.array
        finally:
            self.check_file(gone=gone)

    def check_file(self, *, gone: bool = False) -> None:
        """Raise `PlanFileError` if the column is a file that has changed since it was mapped.

        With `gone`, a deleted file is accepted, because its numbers stay mapped.
        """
        if self.path is not None and self._status != (now := _status(self.path)):
            if gone and not now:
                return
            got = "one that has changed" if now else "nothing"
            cure = "open it again once it is complete"
            raise PlanFileError(self.path, "must be the file that was opened", got, cure)

    def to_dict(self) -> dict[str, Any]:
        """Return the column's dtype, length and sha256 as JSON types; never its values."""
        return dict(self.identity)

    def __len__(self) -> int:
        return len(self._array)

    def __repr__(self) -> str:
        where = "" if self.path is None else f", of {self.path}"
        return f"<Column of {len(self)} numbers, {self._array.dtype.str}{where}>"

    def __eq__(self, other: object) -> bool:
        return self.identity == other.identity if isinstance(other, Column) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.identity["sha256"])

    def __reduce__(self) -> tuple[Callable[..., Column], tuple[Any, ...]]:
        if self.path is None:
            return Column, (self.array,)
        return Column.claimed, (self.path, self.identity, self._status)


@contextmanager
def from_json() -> Iterator[None]:
    """Refuse strings as columns while an order is made from JSON: they would be opened as files."""
    token = _IN_JSON.set(True)
    try:
        yield
    finally:
        _IN_JSON.reset(token)


def _mapped(path: str, kind: str | None) -> tuple[Status, NDArray[Any]]:
    """Return a `.npy` file's status and its array, memory-mapped."""
    rule = "that of a .npy file of numbers in one dimension"
    try:
        status = _status(path)
        if status and not (Path(path).is_file() or Path(path).is_dir()):
            raise ValueError("a pipe, device or socket")  # which would block its reader
        if not has_header(Path(path)):  # np.load would take it for a pickle, and say how to run it
            raise ValueError("it has no .npy header")
        with np.errstate(over="ignore"):  # sizes of more than 2**63 bytes, which are refused
            array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # whatever np.load raises at what it cannot read
        cure = cure_of_file(path, floats=kind == FLOATS)
        raise invalid("a column's path", rule, f"{path} ({error})", cure) from None
    return status, array


def _as_column(what: str, values: Any, kind: str | None, path: str | None) -> NDArray[Any]:
    """Return numbers as a read-only array with a column's dtype; not copied if they have one."""
    array = _as_numbers(what, values, kind, path)
    types = TYPES[FLOATS if kind == FLOATS or array.dtype.kind == "f" else INTEGERS]
    if array.dtype.str not in types:
        array = array.astype(types[-1])
    elif path is None:
        array = array.copy()  # a caller may write to the array later
    array = np.ascontiguousarray(array)
    array.setflags(write=False)
    return array


def _as_numbers(asked: str, values: Any, kind: str | None, path: str | None) -> NDArray[Any]:
    """Return numbers as NumPy has them, or raise `IndexPlanError` unless a column can hold them."""
    what = path or asked
    if isinstance(values, range) and values[LONGEST_RANGE:]:  # its len may raise
        rule = f"an array, or a range of at most {LONGEST_RANGE:,} numbers"
        raise invalid(what, rule, values, "pass np.arange(...), or a file, if you have the memory")
    flat = "a flat array" if path else "a flat list or array"
    rule = f"{flat} of {kind or 'integers below 2**63, or of floats'}"
    try:
        array = as_array(values)
    except Exception:  # lists of different lengths, or whatever a user's class raises
        cure = cure_of_values(asked, values, None, path, floats=kind == FLOATS)
        raise invalid(what, rule, values, cure) from None
    if isinstance(values, np.ma.MaskedArray):
        raise invalid(what, rule, "a masked array", "leave out what is masked, or fill it")
    if large := _too_large(values, array):
        raise invalid(what, rule, large[0], _smaller(kind))
    if array.shape == (0,):
        array = array.astype(TYPES[kind or INTEGERS][0])
    types = "iu" if kind == INTEGERS else "iuf"
    if array.ndim != 1 or array.dtype.kind not in types or array.itemsize > 8:
        short = path is None and array.size <= AS_THEY_ARE
        got = values if short else f"{array.dtype} of shape {array.shape}"
        cure = cure_of_values(asked, values, array, path, floats=kind == FLOATS)
        raise invalid(what, rule, got, cure)
    # other types need no check, which would read the whole file each time it is opened
    if array.dtype.newbyteorder("=") == np.uint64 and (most := int(array.max(initial=0))) >= 2**63:
        raise invalid(what, rule, most, _smaller(kind))
    if kind == FLOATS and not _are_floats(array):
        most = max(int(array.max()), -int(array.min()))
        raise invalid(what, "integers up to 2**53, which floats hold exactly", most, "divide them")
    return array


def _smaller(kind: str | None) -> str:
    """Return what to do about an integer that is too large."""
    return "pass smaller integers" if kind == INTEGERS else "pass smaller integers, or floats"


def as_array(values: Any) -> NDArray[Any]:
    """Return what NumPy makes of values; booleans if a list has any, which NumPy may make 1."""
    return np.asarray(values, np.bool_ if _holds_boolean(values) else None)


def _holds_boolean(values: Any) -> bool:
    """Return whether a list holds a boolean, alone or in another list or an array."""
    if not isinstance(values, Sequence) or isinstance(values, str | bytes | range):
        return False
    kinds = set(map(type, values))  # 30 ms for a million
    if any(kind.__name__ in ("bool", "bool_") for kind in kinds):  # Python's and NumPy's
        return True
    if all(issubclass(kind, int | float | np.generic) for kind in kinds):
        return False
    dtypes = ("bool", "torch.bool")
    return any(
        _holds_boolean(each) or str(getattr(each, "dtype", None)) in dtypes for each in values
    )


def _too_large(values: Any, row: NDArray[Any]) -> list[int]:
    """Return the integers that NumPy has turned into different floats, or left as objects.

    NumPy makes floats of lists that hold an integer from 2**63 on and a negative one or a float,
    and objects of integers that do not fit in 64 bits.
    """
    if row.ndim == 1 and row.dtype.kind == "O":
        return [each for each in row if isinstance(each, int) and not -(2**63) <= each < 2**63]
    if row.dtype.kind == "f" and isinstance(values, list | tuple):
        return [each for each in values if isinstance(each, int) and abs(each) > EXACT]
    return []


def _are_floats(row: NDArray[Any]) -> bool:
    """Return whether each number is exactly a float64."""
    if row.dtype.kind == "f" or not row.size:
        return True
    return int(row.min()) >= -EXACT and int(row.max()) <= EXACT


def _blocks(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    for start in range(0, len(array), BLOCK):
        yield array[start : start + BLOCK]


def _status(path: str) -> Status:
    """Return a status that differs between files and after each change; () if the file is gone."""
    try:
        found = os.stat(path)  # noqa: PTH116 (2 us; with Path it is 10)
    except FileNotFoundError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def is_identity(value: Any) -> bool:
    """Return whether a value from JSON stands for a column."""
    return isinstance(value, Mapping) and set(value) == set(IDENTITY)


def check_identity(field: str, identity: Mapping[str, Any]) -> None:
    """Raise `IndexPlanError` unless dtype, length and sha256 may be a column's."""
    digest, types = identity["sha256"], [each for kind in TYPES.values() for each in kind]
    if identity["dtype"] not in types:
        raise invalid(f"{field}'s dtype", f"one of {', '.join(types)}", identity["dtype"], SPEC)
    integer(f"{field}'s length", identity["length"], 0, 2**60, SPEC)
    if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
        raise invalid(f"{field}'s sha256", "64 hexadecimal digits", digest, SPEC)


def find_column(field: str, identity: Mapping[str, Any], columns: Columns) -> Column:
    """Return the column that the dtype, length and sha256 in a JSON field stand for.

    Parameters
    ----------
    columns : folder or file, or iterable of columns, arrays, paths and folders
        Where to look. In a folder it is `<sha256>.npy`, as in the folder `columns` of a plan
        directory, or any other `.npy` file: those of its length are read until it is found.

    Raises
    ------
    IndexPlanError
        If it is not found; the message names the field and the sha256.
    """
    check_identity(field, identity)
    found: Column | None = None
    if callable(columns):
        found = columns(identity)
    elif isinstance(columns, str | os.PathLike):
        found = _candidate(columns, identity)
    elif columns is not None:
        if not isinstance(columns, Iterable):
            raise invalid(
                "columns", "a folder or list of columns", columns, "pass a list of arrays"
            )
        candidates = (_candidate(each, identity) for each in columns)
        found = next((each for each in candidates if each is not None), None)
    if found is None:
        what = f"{identity['length']} numbers, {identity['dtype']}"
        sought = f"a column of {what}, with sha256 {identity['sha256']}"
        cure = Cure(
            "pass it, or the folder that it is in, as columns=",
            "give it, or the folder that it is in, as --column",
        )
        raise IndexPlanError(field, f"needs {sought}", "no such column", cure)
    return found


def _in_folder(folder: str | os.PathLike[str], identity: Mapping[str, Any]) -> Column | None:
    path = Path(folder) / f"{identity['sha256']}.npy"
    if path.exists():
        return Column.claimed(str(path), identity)
    for other in sorted(Path(folder).glob("*.npy")):
        try:
            found = _candidate(str(other), identity) if other.is_file() else None
        except IndexPlanError:  # not a column, but for example a table
            continue
        if found is not None:
            return found
    return None


def _is_of_length(values: Any, length: int) -> bool:
    try:
        return bool(len(values) == length)
    except Exception:  # it has no length, or a user's class raises something else
        return False


def _candidate(values: Any, identity: Mapping[str, Any]) -> Column | None:
    """Return values as a column if it has the given identity, else None."""
    if isinstance(values, str | os.PathLike):
        if os.path.isdir(values):  # noqa: PTH112 (Path raises where a name is too long)
            return _in_folder(values, identity)
    elif not isinstance(values, Column) and not _is_of_length(values, identity["length"]):
        return None
    column = Column.of(values)
    if len(column) != identity["length"]:
        return None
    if identity["dtype"] in TYPES[FLOATS]:
        if not _are_floats(column.array):
            return None
        column = Column.of(column, FLOATS)
    return column if column.identity == identity else None
