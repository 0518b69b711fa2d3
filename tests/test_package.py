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

from indexplan.cli.parsing import ADDRESS
from tests.test_docs import anchors

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
            if link.startswith("https://") and not link.startswith(address):
                continue  # a page of another project
            place, _, anchor = link.removeprefix(f"{address}/{folder}/main/").partition("#")
            assert (ROOT / place).exists(), link
            assert not anchor or anchor in anchors(ROOT / place), link
    assert "](docs" not in page
    assert "<img" not in page
    code = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
    assert code.findall(readme) == code.findall(page)


def test_addresses_agree(project: ProjectMetadata[Any], address: str) -> None:
    """The repository's address is the same wherever it is written, before a release and after."""
    assert ADDRESS == project.core.urls["Documentation"]  # with which the help ends
    ours = {name: url for name, url in project.core.urls.items() if name != "Documentation"}
    assert all(url.startswith(address) for url in ours.values())
    names = ("pyproject.toml", "SECURITY.md", "README.md", "CITATION.cff")
    for name in (*names, "docs/index.md", ".github/ISSUE_TEMPLATE/config.yml"):
        found = re.findall(r"https://github.com/[\w-]+/indexplan\b", (ROOT / name).read_text())
        # a release takes the line away that clones it
        assert {address} == set(found) or (name == "docs/index.md" and not found), name


def test_a_release_changes_every_install_line(tmp_path: Path) -> None:
    """CONTRIBUTING's command turns each install from a checkout into one from the index, once."""
    files = [ROOT / "README.md"]
    files += [path for kind in ("md", "ipynb") for path in (ROOT / "docs").rglob(f"*.{kind}")]
    before = {str(path.relative_to(ROOT)): path.read_text() for path in files}
    for name, text in before.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (command,) = re.findall(r"<!-- release command -->\n```sh\n(.*?)```", text, re.DOTALL)
    for _ in range(2):
        subprocess.run(["/usr/bin/env", "bash", "-euc", command], cwd=tmp_path, check=True)
    after = {name: (tmp_path / name).read_text() for name in before}
    outdated = r'pip install (?:\\?"?\.\[|\.`)|no release|\[checkout\]|git clone'
    assert [] == [name for name in after if re.search(outdated, after[name])]
    assert 'pip install "indexplan[torch]"' in after["README.md"]
    assert "`pip install indexplan`" in after["README.md"]


def test_citation_agrees(project: ProjectMetadata[Any], address: str) -> None:
    """CITATION.cff says what the package says of itself."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert project.core.license_expression == cited["license"]
    assert address == cited["repository-code"]
    assert project.core.authors == cited["authors"]


@pytest.mark.slow
def test_an_installed_wheel_has_the_header(tmp_path: Path) -> None:
    """The folder that the page of C names is in the wheel, with our header."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = re.findall(
        r"^include=\$\(python -c '(.*)'\)$", (ROOT / "docs/recipes.md").read_text(), re.MULTILINE
    )
    said = subprocess.run(
        [sys.executable, "-c", *code],
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
