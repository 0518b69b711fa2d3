"""Files of others run no code: an array that holds a pickle is refused, and is not unpickled."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip


class Trap:
    """Something that makes a folder when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("sprung",)  # in the current folder


def pickled(path: Path) -> None:
    """Put an array that holds a pickle in the place of a file."""
    with path.open("wb") as stream:  # given a path, NumPy adds .npy to its name
        np.save(stream, np.array([Trap()], dtype=object), allow_pickle=True)


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plan directory with a column, which is the current folder."""
    path = tmp_path / "a.plan"
    order = ip.Weighted(np.arange(1.0, 101.0), seed=1)
    ip.save(ip.Plan(order, world_size=2, batch_size=4), path)
    monkeypatch.chdir(path)
    return path


def test_the_trap_works(saved: Path) -> None:
    """NumPy springs it where pickles are allowed, so that the other tests could fail."""
    pickled(saved / "hashes.npy")
    np.load("hashes.npy", allow_pickle=True)
    assert (saved / "sprung").exists()


@pytest.mark.parametrize("pattern", ["*/chunk-*.xxh64", "*/chunk-*.npy", "columns/*.npy"])
def test_plan_directories_run_no_code(saved: Path, pattern: str) -> None:
    """Each kind of array of a plan directory may hold a pickle: it is refused."""
    (file,) = saved.glob(pattern)
    pickled(file)
    with pytest.raises(ip.PlanFileError) as error:
        ip.load(saved)
    assert file.name in str(error.value)
    assert not (saved / "sprung").exists()


def test_columns_run_no_code(saved: Path) -> None:
    """A .npy file that is passed as a column is read without pickles too."""
    pickled(Path("weights.npy"))
    with pytest.raises(ip.IndexPlanError):
        ip.Weighted("weights.npy")
    assert not (saved / "sprung").exists()


def test_datasets_run_no_code(saved: Path) -> None:
    """Of a dataset's .npy file the header is read, and nothing else."""
    pickled(Path("data.npy"))
    ip.Dataset.scan("data.npy")
    assert not (saved / "sprung").exists()
