"""The site in a browser: Debian's chromium, without a network; see .ci/run.

SCREENSHOTS=folder keeps the pictures of the pages.
"""

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

PAGES = (
    "index",
    "tutorials/first-run",
    "idea",
    "benchmarks",
    "reference/plan",
    "command-line",
)


def watched(page: Page) -> tuple[Page, list[str]]:
    """Return a page, and a list to which each error, warning and request elsewhere is added."""
    wrong: list[str] = []
    page.on("console", lambda said: wrong.append(f"{said.type}: {said.text}"))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("requestfailed", lambda request: wrong.append(f"failed: {request.url}"))
    page.on(
        "request",
        lambda request: None if is_ours(request.url) else wrong.append(f"asked: {request.url}"),
    )
    page.on(
        "response",
        lambda answer: wrong.append(f"{answer.status}: {answer.url}") if answer.status > 399 else 0,
    )
    return page, wrong


def without_search(context: BrowserContext) -> None:
    """Give pages nothing to search: each would make an index of all the others, for seconds."""
    config = {"lang": ["en"], "separator": " ", "pipeline": [], "fields": {}}
    nothing = {"config": config, "docs": []}
    context.route("**/search_index.json", lambda route: route.fulfill(json=nothing))


def is_ours(url: str) -> bool:
    """Return whether an address leads to loopback, to a file, or to the page itself."""
    return url.startswith(("http://127.0.0.1:", "file:///", "data:", "blob:", "about:"))


@pytest.mark.parametrize("name", PAGES)
def test_page(name: str, look: Page, served: str, request: pytest.FixtureRequest) -> None:
    """A page is drawn in the system's colours, and is not wider than the window."""
    look.goto(f"{served}{name}.html")
    dark = "dark" in request.node.name
    expect(look.locator("body")).to_have_attribute("data-md-color-scheme", DARK if dark else LIGHT)
    if folder := os.environ.get("SCREENSHOTS"):
        look.screenshot(path=Path(folder) / f"{request.node.name}.png".replace("/", "-"))
    assert look.evaluate("innerWidth") == look.evaluate("document.documentElement.scrollWidth")
    paper, ink = (look.evaluate(LUMINANCE, [".md-container", of]) for of in GROUND_AND_INK)
    assert abs(paper - ink) > 120
    assert dark == (paper < ink)


def test_every_page_fits_a_phone(browser: Browser, served: str, site: Path) -> None:
    """No page is wider than 390 pixels; tables and code scroll by themselves."""
    context = browser.new_context(viewport={"width": 390, "height": 900})
    context.route("**/search*", lambda route: route.abort())  # each page would load all others
    page = context.new_page()
    widths = {}
    for file in sorted(site.rglob("*.html")):
        name = file.relative_to(site).as_posix()
        page.goto(served + name)
        widths[name] = page.evaluate("document.documentElement.scrollWidth")
    context.close()
    assert {} == {name: width for name, width in widths.items() if width != 390}


DARK, LIGHT = "slate", "default"
GROUND_AND_INK = ("backgroundColor", "color")
LUMINANCE = """([selector, of]) => {
    for (let at = document.querySelector(selector); at; at = at.parentElement) {
        const [r, g, b, a = 1] = getComputedStyle(at)[of].match(/[\\d.]+/g).map(Number)
        if (a > 0.5) return (r + g + b) / 3
    }
}"""


# nodes of the index of search, whose edges are the same digits in a row
APART = """() => {
    const node = edges => Object.assign(new lunr.TokenSet(), { edges }).toString()
    return node({ 1: { id: 23 }, 4: { id: 5 } }) !== node({ 1: { id: 2 }, 3: { id: 45 } })
}"""


@pytest.mark.parametrize("by", ["served", "files"])
def test_search(by: str, browser: Browser, served: str, site: Path) -> None:
    """Search finds pages and names, on a server and in files; its first result can be opened."""
    page, wrong = watched(browser.new_page())
    page.goto(f"{served}index.html" if by == "served" else (site / "index.html").as_uri())
    page.get_by_placeholder("Search").click()
    results = page.locator(".md-search-result__item")
    words = {
        "remainder": "Epochs and batch sizes",
        "SFTTrainer": "From Hugging Face",
        "ShardShuffle": "indexplan.ShardShuffle",
    }
    for word, expected in words.items():
        page.get_by_placeholder("Search").fill("")
        page.get_by_placeholder("Search").press_sequentially(word)
        expect(results.first).to_contain_text(expected)
    if by == "served":
        assert page.workers[0].evaluate(APART)
    results.first.locator("a").first.click()
    page.wait_for_url("**/reference/orders.html**")
    expect(page.locator("[id='indexplan.ShardShuffle']")).to_have_count(1)
    page.close()
    assert not wrong


GUIDES = {  # pages, and what people type who look for them
    "resume": ["resume", "checkpoint"],
    "glossary": ["cursor"],
    "trainers": ["SLURM_PROCID", "slurm", "lightning", "fabric", "FSDP", "accelerate", "keras"],
    "ledger": ["audit", "ledger", "replay"],
    "logging": ["logging", "wandb", "tensorboard"],
    "epochs": ["drop", "pad", "epoch"],
    "classes": ["weights", "class imbalance", "NO_DUPLICATES", "no duplicates in batch"],
    "mixtures": ["mixture", "global batch of one dataset"],
    "lengths": ["packing"],
    "tokens": ["tokens"],
    "files": ["S3"],
    "shards": ["parquet"],
    "determinism": ["seed"],
    "live": ["torchft", "elastic"],
    "migrate/pytorch": ["DistributedSampler", "drop_last"],
    "migrate/hugging-face": ["SFTTrainer"],
    "migrate/megatron": ["megatron"],
    "migrate/large-runs": ["torchtitan", "olmo", "nemo"],
    "migrate/grain": ["maxtext", "grain"],
    "reinforcement-learning": ["GRPO", "DAPO"],
    "migrate/jax": ["jax"],
    "migrate/webdataset": ["webdataset tar"],
}


def test_search_leads_to_guides(browser: Browser, served: str) -> None:
    """The first hit for what people type is the page that explains it."""
    page, wrong = watched(browser.new_page())
    page.goto(f"{served}index.html")
    asked = page.get_by_placeholder("Search")
    asked.click()
    results = page.locator(".md-search-result__item")
    for word, name in ((word, name) for name, words in GUIDES.items() for word in words):
        asked.fill("")
        expect(results).to_have_count(0)
        asked.fill(word[:-1])  # without a key, each of which is a search
        asked.press(word[-1])
        link = re.compile(rf"/{name}\.html")
        first = results.first.locator("a").first
        expect(first, word).to_have_attribute("href", link, timeout=30_000)
    page.close()
    assert not wrong


def test_copy_and_colours(browser: Browser, served: str) -> None:
    """Code has a button that copies it, and the palette can be switched by hand."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    without_search(context)
    page, wrong = watched(context.new_page())
    page.goto(f"{served}index.html")
    code, schemes = page.locator("pre", has_text="import indexplan"), set()
    code.hover()
    code.locator(".md-code__button").click()
    expect(page.locator(".md-dialog")).to_contain_text("Copied")
    assert "import indexplan as ip" in page.evaluate("navigator.clipboard.readText()")
    for _ in range(3):
        page.locator("[data-md-component=palette] label:not([hidden])").click()
        schemes.add(page.locator("body").get_attribute("data-md-color-scheme"))
    assert {DARK, LIGHT} == schemes
    context.close()
    assert not wrong
