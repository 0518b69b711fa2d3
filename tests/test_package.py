"""What a package index shows: a page whose links and pictures work there, and true words."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml  # which the trainers bring
from hatchling.metadata.core import ProjectMetadata
from hatchling.metadata.spec import DEFAULT_METADATA_VERSION, get_core_metadata_constructors
from hatchling.plugin.manager import PluginManager

from tests.support.headings import anchors

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def project() -> ProjectMetadata[Any]:
    """The project as its build sees it."""
    return ProjectMetadata(str(ROOT), PluginManager())


@pytest.fixture(scope="module")
def address(project: ProjectMetadata[Any]) -> str:
    """Where the repository lies."""
    return project.core.urls["Repository"]


def test_page_links_are_absolute(project: ProjectMetadata[Any], address: str) -> None:
    """In a wheel's description each link and picture of README is absolute, and leads somewhere."""
    wheel = get_core_metadata_constructors()[DEFAULT_METADATA_VERSION](project)
    assert "Description-Content-Type: text/markdown\n" in wheel
    page = wheel[wheel.index("# indexplan\n") :]
    readme = (ROOT / "README.md").read_text()
    for kind, folder in ((r"!\[[^]]*\]", "raw"), (r"(?<!!)\[[^]]*\]", "blob")):
        links = re.findall(kind + r"\((.*?)\)", page)
        assert len(re.findall(kind + r"\(", readme)) == len(links) > 0
        for link in links:
            place, _, anchor = link.removeprefix(f"{address}/{folder}/main/").partition("#")
            assert (ROOT / place).exists(), link
            assert not anchor or anchor in anchors(ROOT / place), link
    assert "](docs" not in page
    assert "<img" not in page
    code = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
    assert code.findall(readme) == code.findall(page)


def test_addresses_agree(project: ProjectMetadata[Any], address: str) -> None:
    """The repository's address is the same wherever it is written."""
    assert all(url.startswith(address) for url in project.core.urls.values())
    names = ("pyproject.toml", "SECURITY.md", "README.md", "docs/index.md")
    texts = [(ROOT / name).read_text() for name in names]
    found = re.findall(r"https://github.com/[\w-]*indexplan[\w-]*/[\w-]+", "".join(texts))
    assert {address} == set(found)


def test_commands_install_what_there_is(project: ProjectMetadata[Any]) -> None:
    """Each `pip install` of a page, a notebook or a message names an extra or a group we have.

    Results of measurements show the commands of their day.
    """
    extras = {*project.core.optional_dependencies}
    groups = {*project.config["dependency-groups"]}
    folders = ("docs", "indexplan", "adapters", "benchmarks", "tests", ".github")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.*")]
    files += [*ROOT.glob("*.md"), ROOT / "mkdocs.yml", ROOT / ".ci" / "run"]
    found: dict[str, set[str]] = {}
    for file in files:
        if file.suffix in {"", ".md", ".ipynb", ".py", ".yml"}:
            text = file.read_text()
            named = re.findall(r"pip install [^\n]*?(?:\.|indexplan)\[([a-z,]+)\]", text)
            asked = re.findall(r"--group\s+([a-z]+)", text)
            found[str(file.relative_to(ROOT))] = {*",".join(named).split(","), *asked} - {""}
            assert {*",".join(named).split(",")} <= {"", *extras}, file
            assert {*asked} <= groups, file
    assert {"torch", "cli", "test"} <= found["README.md"]
    assert {"bench"} == found["docs/benchmarks.md"]
    assert {"plot"} == found["docs/notebooks/a-plan-looked-at.ipynb"]


def test_citation_agrees(project: ProjectMetadata[Any], address: str) -> None:
    """CITATION.cff says what the package says of itself."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert project.core.license_expression == cited["license"]
    assert address == cited["repository-code"]
    assert project.core.authors == cited["authors"]


def test_an_installed_wheel_has_the_header(tmp_path: Path) -> None:
    """get_include() of what was unpacked from the wheel is the folder in which the header lies."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    said = subprocess.run(
        [sys.executable, "-c", "import indexplan; print(indexplan.get_include())"],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    header = "indexplan/shuffle_v1.h"
    assert tmp_path / "site" / "indexplan" / "include" == Path(said.strip())
    ours = ROOT / "indexplan" / "include" / header
    assert ours.read_bytes() == Path(said.strip(), header).read_bytes()
