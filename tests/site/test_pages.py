"""Pages show what they show in the repository, and need nothing from other hosts."""

import importlib.util
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup
from markdown_it import MarkdownIt
from mkdocs.config import load_config

from tests.site.conftest import ROOT

PAGES = sorted(
    page.relative_to(ROOT / "docs").as_posix()
    for page in (ROOT / "docs").rglob("*.md")
    if page.parent.name != "reference"  # whose words are in docstrings
)
COUNTED = ("h1", "h2", "h3", "h4", "li", "tr", "td", "pre", "a", "img", "strong", "em")


@pytest.mark.parametrize("page", PAGES)
def test_same_as_in_the_repository(page: str, site: Path) -> None:
    """The site reads Markdown as GitHub does: as many headings, items, cells, links and so on.

    It does not take `**` between digits for the beginning of bold words, as GitHub does: write
    powers as code.
    """
    there = MarkdownIt("commonmark").enable("table").render((ROOT / "docs" / page).read_text())
    file = site / page
    file = file if file.with_suffix(".html").exists() else site / "repository" / "docs" / page
    here = BeautifulSoup(file.with_suffix(".html").read_text(), "html.parser").article
    assert here is not None
    for link in here.select(".headerlink"):
        link.decompose()
    found = BeautifulSoup(there, "html.parser")
    assert {tag: len(found.find_all(tag)) for tag in COUNTED} == {
        tag: len(here.find_all(tag)) for tag in COUNTED
    }


@pytest.mark.parametrize("published", [False, True])
def test_address_of_the_site(published: bool, tmp_path: Path) -> None:
    """A site that is published by itself names the address of its pages; no other site does."""
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs" / "site" / "hooks.py")
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(hooks := importlib.util.module_from_spec(spec))
    project = (ROOT / "pyproject.toml").read_text()
    if published:
        project = re.sub(
            "(?m)^Documentation = .*", 'Documentation = "https://a.example/b"', project
        )
    (tmp_path / "pyproject.toml").write_text(project)
    (tmp_path / "indexplan").mkdir()
    (tmp_path / hooks.VERSION).write_text((ROOT / hooks.VERSION).read_text())
    hooks.ROOT = tmp_path
    config = load_config(str(ROOT / "mkdocs.yml"))
    hooks.on_config(config)
    assert ("https://a.example/b/" if published else None) == (config.site_url or None)


@pytest.fixture(scope="session")
def references(site: Path) -> tuple[list[tuple[Path, str, str]], dict[Path, set[str]], list[Any]]:
    """What each page refers to: page, tag and address; the places that it has; and pictures."""
    found, places, pictures = [], {}, []
    for page in site.rglob("*.html"):
        html = BeautifulSoup(page.read_text(), "html.parser")
        for tag in html.select("[href], [src]"):
            found.append((page, tag.name, str(tag.get("src") or tag["href"])))
        places[page] = {str(tag["id"]) for tag in html.select("[id]")}
        pictures += [(page.name, each) for each in html.select("article img")]
    return found, places, pictures


def test_nothing_from_other_hosts(site: Path, references: tuple[Any, ...]) -> None:
    """No page, style or script of the site loads anything from another host."""
    loaded = [address for _, tag, address in references[0] if tag != "a"]
    for style in site.rglob("*.css"):
        loaded += re.findall(r"url\(([^)]*)\)", style.read_text())
    assert len(loaded) > 500
    assert not [each for each in loaded if re.match(r"['\"]?(https?:)?//", each)]


def test_links(site: Path, references: tuple[Any, ...]) -> None:
    """Every link inside the site leads to a file that is there, and to a place that it has."""
    found, places, _ = references
    wrong, followed = [], 0
    for page, _, address in found:
        target = urlsplit(address)
        if target.scheme or page.name == "404.html":  # which is of any folder
            continue
        followed += 1
        file = (page.parent / unquote(target.path)).resolve() if target.path else page
        place = unquote(target.fragment)
        if not file.is_file() or (place and place not in places[file]):
            wrong.append(f"{page.relative_to(site)}: {address}")
    assert not wrong
    assert followed > 5000


def test_every_picture_has_words(references: tuple[Any, ...]) -> None:
    """Who can't see a picture is told what it shows."""
    *_, pictures = references
    assert len(pictures) > 10
    assert [] == [(name, str(each)[:80]) for name, each in pictures if not each.get("alt")]


def test_pages_of_files(site: Path) -> None:
    """An example's page shows all of its code, and a notebook's that of each cell."""
    files = [*(ROOT / "docs" / "examples").glob("*.py"), *(ROOT / "docs").rglob("*.ipynb")]
    for file in files:
        page = site / file.relative_to(ROOT / "docs").with_name(f"{file.name}.html")
        html = BeautifulSoup(page.read_text(), "html.parser")
        shown = [block.get_text().strip() for block in html.select("pre")]
        text = file.read_text()
        codes = [text]
        if file.suffix == ".ipynb":
            cells = json.loads(text)["cells"]
            codes = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        assert [] == [code for code in codes if code.strip() not in shown], file.name
