"""The C header has the package's indices, in every build; and the example that reads a plan."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import indexplan as ip
from tests.everywhere.drawn import Run, drawn
from tests.support.shuffle_cases import CASES
from tests.test_docs import check_page

pytestmark = pytest.mark.languages

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "rank_batches.c"
KNOWN = [Run(n, seed, epoch, start, len(indices)) for n, seed, epoch, start, indices in CASES]
NONE = -1  # SHUFFLE_V1_NONE, as int64
FOLDER = Path(__file__).parent
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
SANITIZED = ["-O1", "-g", "-fsanitize=undefined,address", "-fno-sanitize-recover=all"]
COMPILERS = [
    ["gcc", "-std=c99", "-O2", *WARNINGS],
    ["gcc", "-std=c99", "-O3", "-march=native", *WARNINGS],
    ["gcc", "-std=c99", *SANITIZED, *WARNINGS],
    ["gcc", "-std=c99", "-march=native", *SANITIZED, *WARNINGS],
    ["g++", "-x", "c++", "-std=c++11", "-O2", *WARNINGS],
    ["g++", "-x", "c++", "-std=c++11", "-O2", "-march=native", *WARNINGS],
    ["clang", "-std=c99", "-O2", *WARNINGS],
    ["clang", "-std=c99", "-O2", "-march=native", *WARNINGS],
    ["clang++", "-x", "c++", "-std=c++11", "-O2", *WARNINGS],
    ["nvcc", "-x", "cu", "-O2", "-Werror", "all-warnings"],  # what runs on the host
]
ON_GPU = ["nvcc", "-O2", "-Werror", "all-warnings"]
NEEDED = {"gcc", "g++", "clang", "clang++"}  # CI installs them; nvcc is taken where it is
BUILDS = [each for each in COMPILERS if each[0] in NEEDED or shutil.which(each[0])]
if shutil.which("nvcc") and shutil.which("nvidia-smi"):
    BUILDS += [ON_GPU]
NAMES = [" ".join(each for each in build if each not in WARNINGS) for build in BUILDS]


def answers(command: list[str]) -> Path:
    """Return the source of the program that answers, by a GPU or by the host."""
    return FOLDER / ("answers.cu" if command == ON_GPU else "answers.c")


def build(command: list[str], source: Path, program: Path, include: str | None = None) -> Path:
    """Compile a program, and return its path."""
    folder = Path(ip.__file__).parent / "include" if include is None else include
    done = subprocess.run(
        [*command, f"-I{folder}", str(source), "-o", str(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (0, "") == (done.returncode, done.stderr), done.stderr
    return program


def indices(program: Path, runs: Sequence[Run]) -> list[NDArray[np.int64]]:
    """Return the indices of runs, by a program that answers."""
    rows = [(r.n, r.seed % 2**64, r.seed >> 64, r.epoch, r.start, r.num) for r in runs]
    given = np.array(rows, np.uint64).reshape(-1, 6).tobytes()
    done = subprocess.run([program], input=given, capture_output=True, check=False)
    assert (0, b"") == (done.returncode, done.stderr), done.stderr.decode()
    found = np.frombuffer(done.stdout, np.uint64).astype(np.int64)
    assert len(found) == sum(run.num for run in runs)
    return np.split(found, np.cumsum([run.num for run in runs], dtype=np.int64)[:-1])


def differences(program: Path, runs: Sequence[Run]) -> int:
    """Return at how many positions the program and the package differ."""
    pairs = zip(indices(program, runs), runs, strict=True)
    return sum(int((found != run.indices()).sum()) for found, run in pairs)


@pytest.fixture(scope="module", params=BUILDS, ids=NAMES)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that answers, by a compiler."""
    path = tmp_path_factory.mktemp("build") / "answers"
    return build(request.param, answers(request.param), path)


def test_known_answers(program: Path) -> None:
    """Those that every language is held to."""
    found = indices(program, KNOWN)
    assert [case.indices for case in CASES] == [each.tolist() for each in found]


def test_a_million_values(program: Path) -> None:
    """Of a thousand shuffles or more, by fill, index and position."""
    assert differences(program, drawn(10**6)) == 0


def test_numbers_outside(program: Path) -> None:
    """No index is made up past the end, nor for sizes and epochs that no shuffle has."""
    past = [
        Run(10, 0, 0, 7, 100),
        Run(10, 0, 0, 10, 3),
        Run(10, 0, 0, 2**64 - 3, 9),
        Run(2**63 - 1, 0, 0, 2**63 - 3, 4),
        Run(0, 0, 0, 0, 3),
        Run(2**63, 0, 0, 0, 3),
        Run(2**64 - 1, 0, 0, 0, 3),
        Run(10, 0, 2**32, 0, 3),  # which isn't epoch 0
        Run(10, 0, 2**64 - 1, 0, 10),
        Run(2**63 - 1, 0, 2**63 + 5, 2, 4),
    ]
    first, _, _, fourth, *_ = found = [each.tolist() for each in indices(program, past)]
    assert first == [*ip.Shuffle(10).take(0, 7, 10), *[NONE] * 97]
    assert fourth == [*ip.Shuffle(2**63 - 1).take(0, 2**63 - 3, 2**63 - 1), NONE, NONE]
    for at in (1, 2, *range(4, len(past))):
        assert found[at] == [NONE] * past[at].num


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that reads a plan, with sanitizers."""
    command = ["gcc", "-std=c99", *SANITIZED, *WARNINGS]
    return build(command, EXAMPLE, tmp_path_factory.mktemp("example") / "rank_batches")


def answered(example: Path, folder: Path, text: str, *numbers: int | str) -> tuple[list[str], str]:
    """Return the lines that the example prints for a plan's text, and what it says of errors."""
    (folder / "plan.json").write_text(text)
    command = [str(example), str(folder / "plan.json"), *map(str, numbers)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == bool(done.stderr)
    return done.stdout.splitlines(), done.stderr


@settings(max_examples=300)
@given(
    st.one_of(st.integers(1, 400), st.integers(2000, 5000)),
    st.integers(0, 10**18),
    st.integers(0, 2**32 - 1),
    st.integers(1, 7),
    st.one_of(st.integers(1, 9), st.integers(900, 2500), st.sampled_from([2**58, 2**59, 2**61])),
    st.sampled_from(["drop", "spread"]),
    st.data(),
)
def test_the_example_reads_a_plan(
    example: Path,
    n: int,
    seed: int,
    epoch: int,
    world_size: int,
    batch_size: int,
    remainder: Any,
    data: st.DataObject,
) -> None:
    """It prints each batch of a rank, as `plan.batches` has them, empty ones too."""
    order, world_size = ip.Shuffle(n, seed), min(world_size, (2**62 - 1) // batch_size)
    if world_size * batch_size > n:
        remainder = "spread"  # as "drop" would read nothing
    plan = ip.Plan(order, world_size=world_size, batch_size=batch_size, remainder=remainder)
    rank = data.draw(st.integers(0, world_size - 1))
    expected = [" ".join(map(str, batch)) for batch in plan.batches(epoch, rank=rank)]
    with TemporaryDirectory() as folder:
        assert (expected, "") == answered(example, Path(folder), plan.to_json(), epoch, rank)


def test_the_example_refuses_other_plans(example: Path, tmp_path: Path) -> None:
    """Whatever the program does not read."""
    plan = ip.Plan(ip.Shuffle(100), world_size=2, batch_size=5)
    assert answered(example, tmp_path, plan.to_json() + "\n", 0, 1)[0]
    others = [
        plan.replace(world_size=None),
        plan.replace(batch_size=(2, 3)),
        plan.replace(global_batch_size=10),
        plan.replace(remainder="pad"),
        plan.replace(sub_epochs=2),
        plan.replace(order=ip.Sequential(100)),
        plan.replace(order=ip.Shuffle(100, 10**19)),
        plan.resume(plan.cursor(0, step=3)),
    ]
    refused = ([], "not a plan that this program reads\n")
    text = plan.to_json()
    no_plans = [text.replace(":5,", f":{number},") for number in (0, 2**61, 2**63, 9 * 10**18)]
    no_plans += [text.replace(":100,", f":{number},") for number in (0, 2**63)]
    no_plans += [text.replace('world_size":2', f'world_size":{n}') for n in (0, 2**63, -2)]
    assert text not in no_plans
    for other in [*(each.to_json() for each in others), *no_plans, text + "1", "", "x" * 2000]:
        assert refused == answered(example, tmp_path, other, 0, 1)


@pytest.mark.parametrize(
    "given", ["", "zero", "1e3", "0x1", "1.0", " 1", "1 ", "+1", "-1", "-18446744073709551615",
              "18446744073709551616", "18446744073709551617", "4294967296"],
)  # fmt: skip
def test_the_example_refuses_what_is_no_number(example: Path, tmp_path: Path, given: str) -> None:
    """Epochs and ranks that it does not have, and texts that are none."""
    plan = ip.Plan(ip.Shuffle(100), world_size=2, batch_size=5).to_json()
    said = f'EPOCH must be a number in [0, 2**32); got "{given}"\n'
    assert ([], said) == answered(example, tmp_path, plan, given, 1)
    for rank in (given, "2"):
        said = f'RANK must be a number in [0, 2); got "{rank}"\n'
        assert ([], said) == answered(example, tmp_path, plan, 0, rank)


def test_the_page(tmp_path: Path) -> None:
    """Its blocks print what it shows, and its kernel compiles where there is a compiler for it."""
    check_page("recipes", tmp_path, "C, C++ and CUDA")
    page = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text()
    (kernel,) = re.findall(r"^```cuda\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "kernel.cu").write_text(kernel)
    for command in (each for each in BUILDS if each[0] == "nvcc"):
        build([*command, "-arch=sm_90", "-c"], tmp_path / "kernel.cu", tmp_path / "kernel.o")
