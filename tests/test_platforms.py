"""CI runs every stage of tests, on the platforms that pyproject.toml allows, and all goldens."""

from __future__ import annotations

import re
from pathlib import Path

from tests.on_aarch64 import GOLDENS
from tests.platforms import PLATFORMS

TOP = Path(__file__).parents[1]
PYPROJECT = (TOP / "pyproject.toml").read_text()
RUN = (TOP / ".ci" / "run").read_text()


def test_the_oldest_are_the_floors() -> None:
    """The oldest platform has the oldest Python, NumPy and numba that may be installed."""
    (dependencies,) = re.findall(r"^dependencies = (.*)", PYPROJECT, re.MULTILINE)
    floors = [re.sub(r"==(.*)\.0$", r">=\1", each) for each in PLATFORMS["oldest"].constraints]
    assert dependencies == str(floors).replace("'", '"')
    assert f'requires-python = ">={PLATFORMS["oldest"].python}"' in PYPROJECT


def test_every_python_of_the_classifiers_is_run() -> None:
    """Each is a platform that installs the wheel."""
    classified = re.findall(r"Python :: (3\.[0-9]+)", PYPROJECT)
    assert classified == sorted({each.python for each in PLATFORMS.values()})


def test_every_stage_is_run() -> None:
    """Each marker that leaves files alone is asked for by CI, and what README's command leaves."""
    stages = set(re.findall(r'"(\w+): stage', PYPROJECT))
    assert stages == {"together", *re.findall(r"pytest -q -m (\w+)", RUN)}
    command = (TOP / "CONTRIBUTING.md").read_text().split("<!-- together command -->")[1]
    assert '-m "together or slow"\n' in command


def test_a_service_runs_each_stage_in_one_job() -> None:
    """What a change has to pass here, it has to pass there, and what is for nights, each night."""
    stages = re.findall(r'^(first|others|nights)\+?="(.*)"', RUN, re.MULTILINE)
    of_nights = [stage for name, words in stages if name == "nights" for stage in words.split()]
    of_changes = [stage for name, words in stages if name != "nights" for stage in words.split()]
    workflows = TOP / ".github" / "workflows"
    jobs = re.findall(r"stages: (.*)\}", (workflows / "ci.yml").read_text())
    assert sorted(["tests", "newest", *of_changes]) == sorted(" ".join(jobs).split())
    (nightly,) = re.findall(r"stages: \[(.*)\]", (workflows / "nightly.yml").read_text())
    assert sorted(of_nights) == sorted(nightly.replace(",", "").split())


def test_every_golden_is_compared_on_aarch64() -> None:
    """Each file is named once, with tests that exist."""
    stored = sorted(path.stem for path in (TOP / "tests" / "golden").glob("*.json"))
    assert stored == sorted(", ".join(GOLDENS).split(", "))
    for node in sum(GOLDENS.values(), []):
        path, test = node.split("::")
        assert f"def {test}(" in (TOP / path).read_text()
