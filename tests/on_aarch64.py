"""Known answers on aarch64, emulated: `python -m tests.on_aarch64`.

What was compared is written into docs/determinism.md.

Debian's qemu runs Debian's Python for arm64, with the wheels that pip would choose there, so the
kernels are compiled by numba for aarch64 and run as such. The tests are those that compare the
files of tests/golden. To compile under emulation takes minutes, so .ci/run leaves this out, and
`python -m tests.on_aarch64 FOLDER` keeps in FOLDER what was downloaded and compiled.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.support.debian import need, unpack

TOP = Path(__file__).parents[1]
PAGE = TOP / "docs" / "determinism.md"
PYTHON = "3.11"  # of Debian 12
PACKAGES = [f"python{PYTHON}", f"libpython{PYTHON}-stdlib", "libstdc++6"]
WHEELS = ["numpy", "numba", "pytest", "hypothesis", "xxhash"]

ORDERS = (
    "distinct_v1, document_windows_v1, local_shuffle_v1, mixture_grown, packed_v1, "
    "shard_shuffle_v1, strata_v1, token_windows_v1, without_v1"
)
GOLDENS = {  # which tests compare what a file holds
    "balance_v1": ["tests/plan/test_balance.py::test_known_answers"],
    "block_shuffle_v1": ["tests/kernels/test_permutation.py::test_block_shuffle_golden"],
    "classes_v1": [
        "tests/orders/test_classes.py::test_known_answers_of_balanced",
        "tests/orders/test_classes.py::test_known_answers_of_batches",
    ],
    "drawn_plans": ["tests/plan/test_golden_plans.py::test_a_plan_answers_as_it_did"],
    "mixture_v1": ["tests/orders/test_mixture_pattern.py::test_known_answers"],
    "philox4x32_10": ["tests/kernels/test_permutation.py::test_philox_vectors"],
    "plan_file": ["tests/files/test_files.py::test_bytes_are_frozen"],
    "plans": ["tests/plan/test_golden_plans.py::test_a_plan_gives_its_known_answers"],
    "shuffle_v1": ["tests/kernels/test_permutation.py::test_shuffle_golden"],
    "shuffle_v1_cases": ["tests/orders/test_shuffles.py::test_known_answers_of_shuffles"],
    ORDERS: ["tests/orders/test_every_order.py::test_known_answers"],
    "weighted_v1": ["tests/orders/test_weighted.py::test_known_answers"],
}

VERSIONS = """
import json, platform, numba, numpy, llvmlite.binding as llvm
print(json.dumps({"machine": platform.machine(), "python": platform.python_version(),
    "numpy": numpy.__version__, "numba": numba.__version__, "llvm": llvm.get_default_triple()}))
"""


def main(arguments: list[str]) -> None:
    """Run the tests, and write the page if all passed."""
    need("qemu-aarch64-static", "qemu-user-static")
    if arguments:
        compare(Path(arguments[0]).absolute())
    else:
        with tempfile.TemporaryDirectory(prefix="aarch64-") as name:
            compare(Path(name))


def compare(folder: Path) -> None:
    """Compare what the goldens hold; `folder` keeps what was unpacked and compiled."""
    prepare(folder)
    versions = json.loads(emulated(folder, "-c", VERSIONS).stdout)
    nodes = [node for nodes in GOLDENS.values() for node in nodes]
    done = emulated(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", *nodes)
    sys.stdout.write(done.stdout)
    if done.returncode:
        raise SystemExit("some known answers differ on aarch64")
    (num,) = re.findall(r"^(\d+) passed in ", done.stdout, re.MULTILINE)  # none was left out
    write(versions, num)


def prepare(folder: Path) -> None:
    """Unpack a Python for aarch64, and the wheels that pip would choose, once for a folder."""
    if (folder / "site").exists():
        return
    unpack(folder / "root", "bookworm", "arm64", PACKAGES)
    platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in (17, 27, 28)]
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "-q", "--only-binary=:all:", *platforms),
            *("--platform=manylinux2014_aarch64", f"--python-version={PYTHON}"),
            *(f"--target={folder / 'site'}", *WHEELS),
        ],
        check=True,
    )


def emulated(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python for aarch64 in the project's folder; tests may fail, all else may not."""
    variables = [
        f"PYTHONPATH={folder / 'site'}:{TOP}:{TOP / 'adapters'}",
        f"NUMBA_CACHE_DIR={folder / 'cache'}",
    ]
    done = subprocess.run(
        [
            *("qemu-aarch64-static", "-L", str(folder / "root")),
            *(word for variable in variables for word in ("-E", variable)),
            *(str(folder / f"root/usr/bin/python{PYTHON}"), *arguments),
        ],
        cwd=TOP,
        check=False,
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode not in (0, 1):  # 1: pytest ran, and a test failed
        raise SystemExit(f"Python under emulation ended with {done.returncode}: {done.stdout}")
    return done


def count(value: Any) -> int:
    """Count the numbers and texts in a JSON value."""
    if isinstance(value, dict):
        return sum(map(count, value.values()))
    return sum(map(count, value)) if isinstance(value, list) else 1


def write(versions: dict[str, str], num_passed: str) -> None:
    """Write what was run, and what came of it, in its place on the page."""
    files = [TOP / "tests/golden" / f"{name}.json" for name in ", ".join(GOLDENS).split(", ")]
    numbers = sum(count(json.loads(file.read_text())) for file in files)
    of = "Python {python}, NumPy {numpy} and numba {numba} for {llvm}".format_map(versions)
    text = (
        f"The last run, with {of},\n"
        f"compared the {numbers:,} numbers and texts of {len(files)} files; "
        f"{num_passed} of {num_passed} tests passed.\n"
    )
    place = re.compile(r"(<!-- aarch64 -->\n).*?(<!-- /aarch64 -->)", re.DOTALL)
    PAGE.write_text(place.sub(lambda block: block[1] + text + block[2], PAGE.read_text()))


if __name__ == "__main__":
    main(sys.argv[1:])
