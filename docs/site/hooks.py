"""What the site adds to mkdocs: pages of code and of results, and GitHub's anchors of headings.

Pages link to files that are no pages: examples, notebooks, tests, the changelog. In the repository
such a link opens the file. On the site it opens a page that shows the file, made here, so that the
same link works in both, also offline. A file of results is shown as the tables that it holds.
"""

from __future__ import annotations

import html
import json
import posixpath
import re
import sys
import tomllib
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # mkdocs does not have it there
from benchmarks.render import rows as kept  # noqa: E402
from benchmarks.render.pages import PAGES  # noqa: E402
from benchmarks.render.tables import markdown  # noqa: E402
from tests.runs import results as counted  # noqa: E402

VERSION = "indexplan/version.py"
RESULTS = "benchmarks/results/"
LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)\s]*)?\))")
# lunr tells nodes of its index apart by their edges, written one after another: 1 to node 23 reads
# as 12 to node 3 does. Pages with many numbers then have words that nobody wrote, on which a query
# for their first letters fails. With an end to each edge they are told apart.
EDGES_APART = """
lunr.TokenSet.prototype.toString = function () {
  const edges = Object.keys(this.edges).sort().map(label => label + this.edges[label].id + ",")
  return this._str || (this.final ? "1" : "0") + edges.join("")
}
"""
# The scripts of idea.md, what is imported first. Browsers load no module from a file, so the page
# has them as one plain script.
MODULES = ("shuffle_v1", "partition_v1", "see_it")
# How search weighs pages, by how their paths begin. Code, the reference and the project's own
# papers have every word, and a reader who wants them knows their names; most look for some guides.
BOOSTS = {
    "examples/": 0.01,
    "repository/": 0.01,
    "benchmarks": 0.1,
    "command-line": 0.3,
    "reference/": 0.3,
    "notebooks/": 0.3,
    "tutorials/": 0.5,
    "faq": 0.5,
    "resume": 4.0,
    "epochs": 4.0,
    "trainers": 2.0,
    "live": 2.0,
    "migrate/pytorch": 2.0,
}
SPECIFICATIONS = ("docs/specification.md", "docs/plan-file.md")
ALWAYS = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", *SPECIFICATIONS)
"""What has a place in the navigation, and is no part of the guide."""
APART = (*SPECIFICATIONS, "docs/design.md")
"""Papers of the project among the guide's pages, which are shown as files."""


def anchor(heading: str, separator: str) -> str:
    """Return the anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


def on_config(config: MkDocsConfig) -> None:
    """Name headings as GitHub does, as the links of pages do; show the version and the repository.

    Both addresses are those of pyproject.toml.

    The theme's own link to a repository would ask its host for stars.
    """
    config.mdx_configs["toc"]["slugify"] = anchor
    with (ROOT / "pyproject.toml").open("rb") as file:
        urls = tomllib.load(file)["project"]["urls"]
    address, site = urls["Repository"], urls["Documentation"]
    if not site.startswith(address):  # until it is published, no page may name an address there
        config.site_url = f"{site.rstrip('/')}/"
    (version,) = re.findall(r'^__version__ = "(.*)"$', (ROOT / VERSION).read_text(), re.MULTILINE)
    config.copyright = f"indexplan {version}, Apache-2.0"
    link = {"icon": "material/source-repository", "link": address, "name": "Repository"}
    config.extra["social"] = [link]


def page_of(path: str) -> str:
    """Return where the page of a file lies, given by its path from the repository's root."""
    guide = path.startswith("docs/") and path not in APART
    inside = path.removeprefix("docs/") if guide else f"repository/{path}"
    return inside if inside.endswith((".md", ".png", ".svg")) else f"{inside}.md"


def linked_file(link: str, page: str) -> str | None:
    """Return the path from the root of the file that a page links to, if there is such a file.

    The pages of files outside docs/ lie in repository/, and link as those files do.
    """
    source = page.removeprefix("repository/") if page.startswith("repository/") else f"docs/{page}"
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    return path if (ROOT / path).is_file() else None


def is_shown(path: str) -> bool:
    """Return whether a page has to be made of a file, as it is neither a page nor a picture."""
    return not path.startswith("docs/") or path in APART or path.endswith((".py", ".ipynb"))


def fenced(text: str, language: str) -> str:
    """Return a block of code, which may hold such blocks itself."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def of_notebook(text: str) -> str:
    """Return a notebook as Markdown: its words, its code, and what that printed and drew."""
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(fenced(source, "python"))
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                picture = "".join(data["image/png"]).replace("\n", "")
                alt = cell["metadata"]["alt"]
                parts.append(f"![{alt}](data:image/png;base64,{picture})")
            elif "".join(data.get("text/html", "")).startswith("<pre>"):
                said = "".join(data["text/html"]).removeprefix("<pre>").removesuffix("</pre>")
                parts.append(fenced(html.unescape(said), "text"))
            elif "text/plain" in data or "text" in output:
                parts.append(fenced("".join(data.get("text/plain", output.get("text"))), "text"))
            else:
                raise ValueError(f"an output must have text or a PNG; got {sorted(output)}")
    return "\n\n".join(parts)


def content(path: str) -> str:
    """Return a file as the Markdown of its page."""
    text = (ROOT / path).read_text()
    if path.endswith(".md"):
        return text
    if path.endswith(".ipynb"):
        return of_notebook(text)
    if path.startswith(RESULTS):
        name, is_rows = Path(path).stem, path.endswith(".jsonl")
        return markdown(PAGES[name], kept.read(name)) if is_rows else counted.markdown(text)
    return f"# {Path(path).name}\n\n`{path}`\n\n{fenced(text, Path(path).suffix[1:] or 'sh')}"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each file that pages link to, and for each notebook."""
    linked = {*ALWAYS, *(f"{RESULTS}{file.name}" for file in (ROOT / RESULTS).glob("*.json*"))}
    for file in list(files.documentation_pages()):
        for _, link, _ in LINK.findall(file.content_string):
            path = linked_file(link, file.src_uri)
            if path and is_shown(path):
                linked.add(path)
    for file in list(files):
        if file.src_uri.endswith((".py", ".ipynb")):
            files.remove(file)
            linked |= {f"docs/{file.src_uri}"} if file.inclusion.is_included() else set()
    for path in sorted(linked):
        file = File.generated(config, page_of(path), content=content(path))
        if not path.startswith(RESULTS) and not path.endswith(".ipynb") and path not in ALWAYS:
            file.inclusion = InclusionLevel.NOT_IN_NAV
        files.append(file)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to files to their pages, and say how search weighs this one."""
    here = page.file.src_uri
    for start, boost in BOOSTS.items():
        if here.startswith(start):
            page.meta.setdefault("search", {"boost": boost})

    def led(match: re.Match[str]) -> str:
        path = linked_file(match[2], here)
        if path is None or not (here.startswith("repository/") or is_shown(path)):
            return match[0]
        return match[1] + posixpath.relpath(page_of(path), posixpath.dirname(here)) + match[3]

    return LINK.sub(led, markdown)


def plain_script() -> str:
    """Return the modules as one script, whose names are its own."""
    texts = [(ROOT / "docs" / "site" / f"{name}.mjs").read_text() for name in MODULES]
    joined = re.sub(r"^export |^import .*\n", "", "\n".join(texts), flags=re.MULTILINE)
    return f'(() => {{\n"use strict"\n{joined}}})()\n'


def on_post_build(config: MkDocsConfig) -> None:
    """Mend the script that searches, and write that of idea.md."""
    (Path(config.site_dir) / "site" / "see_it.js").write_text(plain_script())
    (script,) = Path(config.site_dir).glob("assets/javascripts/workers/search.*.js")
    script.write_text(script.read_text() + EDGES_APART)
