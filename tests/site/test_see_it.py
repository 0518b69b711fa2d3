"""The table of "See it": its scripts' numbers are the package's, under node and in a browser."""

import random
import re
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

import indexplan as ip
from tests.everywhere.test_js import under_node
from tests.site.test_browser import watched
from tests.support.planned import planned

STATES = 500
REMAINDERS = ("spread", "drop", "pad", "carry")

REFUSED_UNDER_NODE = """
import { Shuffle } from "./docs/site/shuffle_v1.mjs"
const said = work => {
  try { return String(work()) } catch (error) { return `${error.name}: ${error.message}` }
}
const made = (n, seed, epoch) => said(() => new Shuffle(n, seed, epoch).n)
const numbers = [-1, 2.5, NaN, Infinity, "1", null, undefined, true]
const found = {
  n: [...numbers, 0, 2 ** 53 + 2, 1n].map(n => made(n, 0, 0)),
  seed: [...numbers, 2 ** 53, -1n, 2n ** 128n].map(seed => made(9, seed, 0)),
  epoch: [...numbers, 2 ** 32, 1n].map(epoch => made(9, 0, epoch)),
  right: [made(9, 0, 0), made(2 ** 53, 2n ** 128n - 1n, 2 ** 32 - 1), made(1, 2 ** 53 - 1, 1)],
}
const order = new Shuffle(9, 0, 0)
for (const name of ["position", "index"]) {
  const other = name === "index" ? "position" : "index"
  found[name] = [...numbers, 9, 2 ** 53, 1n].map(each => said(() => order[other](each)))
}
console.log(JSON.stringify(found))
"""
NOT_WHOLE = ["-1", "2.5", "NaN", "Infinity", "1", "null", "undefined", "true"]


def test_numbers_outside_under_node() -> None:
    """Whatever has no index is one error that says what it has to be."""
    rules = {
        "n": ("1 to 2**53", ["0", "9007199254740994", "1"]),
        "seed": ("0 to 2**53 - 1, or a BigInt to 2**128 - 1", [str(2**53), "-1", str(2**128)]),
        "epoch": ("0 to 2**32 - 1", [str(2**32), "1"]),
        "position": ("0 to 8", ["9", str(2**53), "1"]),
        "index": ("0 to 8", ["9", str(2**53), "1"]),
    }
    expected = {
        what: [
            f"RangeError: {what} must be a whole number from {rule}; got {got}"
            for got in [*NOT_WHOLE, *others]
        ]
        for what, (rule, others) in rules.items()
    }
    assert {**expected, "right": ["9", str(2**53), "1"]} == under_node(REFUSED_UNDER_NODE)


SHOWN = 48  # columns, and what a last step reads past the end
LAST_EPOCH = 2**32 - 64 * 64  # of the page, whose steps reach so many epochs on at most

# sets controls one after another, and returns the rows of the table: name, and (columns, text)
SET = """states => states.map(state => {
    for (const [name, value] of Object.entries(state)) {
        const at = document.querySelector(`#seen [name=${name}], #seen select.${name}`)
        at.value = value
        at.dispatchEvent(new Event("change"))
    }
    return [...document.querySelectorAll("#seen tr")].map(row => [...row.children].map(
        cell => [cell.colSpan || 1, cell.textContent]))
})"""


def drawn(random: random.Random) -> dict[str, Any]:
    """Draw a state of the controls, the place of the stop last."""
    state = {
        "n": random.choice([random.randint(1, 48), random.randint(6, 20)]),
        "ranks": random.randint(1, 6),
        "batch": random.randint(1, 5),
        "subEpochs": random.randint(1, 5),
        "remainder": random.choice(REMAINDERS),
        "epoch": random.randint(0, 3),
        "seed": random.choice([random.randint(0, 9), random.getrandbits(53)]),
        "then": random.randint(1, 6),
    }
    state["remainder"] = remainder_of(state)
    return {**state, "stop": random.randint(0, total(state))}


def drawn_large(random: random.Random) -> dict[str, Any]:
    """Draw a state of which the table shows a part, often near a stop, an edge or the end."""
    n = int(2 ** random.uniform(5.7, 52.99))
    state = {
        "n": n,
        "ranks": random.choice([random.randint(1, 6), random.randint(1, 64)]),
        "batch": random.choice([random.randint(1, 5), random.randint(1, 64)]),
        "subEpochs": random.choice([1, random.randint(1, 12)]),
        "remainder": random.choice(REMAINDERS),
        "epoch": random.choice([random.randint(0, 3), random.randint(0, LAST_EPOCH)]),
        "seed": random.getrandbits(53),
        "then": random.choice([random.randint(1, 6), random.randint(1, 64)]),
    }
    state["remainder"] = remainder_of(state)
    plan = plan_of(state)
    edge = random.choice([*starts(plan, state["epoch"]), n])
    near = random.choice([0, edge - random.randint(0, SHOWN), edge, n, random.randrange(n)])
    state["from"] = min(max(near, 0), n - SHOWN)
    before, stop = 0, random.randint(0, total(state))
    for part in range(plan.sub_epochs):
        steps = plan.steps(state["epoch"], part)
        if touching := steps_in(plan, state["epoch"], part, shown_of(state)):
            step = touching.start + random.randint(0, len(touching))
            stop = random.choice([stop, before + min(step, len(steps))])
        before += len(steps)
    return {**state, "stop": stop}


def remainder_of(state: dict[str, Any]) -> str:
    """Return the remainder of a state; "pad" where "drop" would read nothing of an epoch."""
    ranks = max(state["ranks"], state["then"])
    kinds = {"remainder": state["remainder"], "sub_epochs": state["subEpochs"]}
    order = ip.Sequential(state["n"])
    return planned(order, world_size=ranks, batch_size=state["batch"], **kinds).remainder


def starts(plan: ip.Plan, epoch: int) -> list[int]:
    """Where the sub-epochs of an uninterrupted epoch start."""
    spread = plan.replace(remainder="spread")  # under "carry" step 0 may begin later
    return [spread.cursor(epoch, part, step=0).position for part in range(plan.sub_epochs)]


def shown_of(state: dict[str, Any]) -> range:
    """The positions that the table shows."""
    start = state.get("from", 0)
    return range(start, min(state["n"], start + SHOWN))


def steps_in(plan: ip.Plan, epoch: int, part: int, positions: range) -> range:
    """The steps of a sub-epoch that may read some positions, or what is past its end."""
    steps = plan.steps(epoch, part)
    if len(positions) == plan.order.num_samples:
        return steps

    def starts_at(step: int) -> int:
        return plan.cursor(epoch, part, step=step).position

    low = max(0, bisect_right(steps, positions.start, key=starts_at) - 1)
    return steps[low : bisect_left(steps, positions.stop, key=starts_at)]


def plan_of(state: dict[str, Any]) -> ip.Plan:
    """The plan of a state, before it stops."""
    order = ip.Shuffle(state["n"], seed=state["seed"])
    kinds: dict[str, Any] = {"remainder": state["remainder"], "sub_epochs": state["subEpochs"]}
    return ip.Plan(order, world_size=state["ranks"], batch_size=state["batch"], **kinds)


def total(state: dict[str, Any]) -> int:
    """The steps of the uninterrupted run in its epoch."""
    plan = plan_of(state)
    return sum(len(plan.steps(state["epoch"], part)) for part in range(plan.sub_epochs))


def read_by(plan: ip.Plan, state: Any, stop: tuple[int, int]) -> list[Any]:
    """What is read in the columns before a sub-epoch's step: number, rank and samples, if any.

    The places of a step follow each other from its first position on, rank by rank.
    """
    epoch, positions, ranks = state["epoch"], shown_of(state), range(plan.world_size or 1)
    is_pad = plan.remainder == "pad"
    ends = [*starts(plan_of(state), epoch)[1:], state["n"]] if is_pad else []
    first = plan.start.sub_epoch if plan.start.epoch == epoch else 0
    found = []
    for part in range(first, plan.sub_epochs):
        end = ends[part] if is_pad else state["n"]
        past = range(end, end + SHOWN if positions.start < end <= positions.stop else end)
        for step in steps_in(plan, epoch, part, positions):
            if (part, step) >= stop:
                break
            place = plan.cursor(epoch, part, step=step).position
            for rank in ranks:
                samples = plan.batch(epoch, part, step=step, rank=rank).tolist()
                where = enumerate(samples, place)
                is_shown = [each for at, each in where if at in (past if at >= end else positions)]
                found += [(step, rank, is_shown)] if is_shown else []
                place += len(samples)
    return found


def expected(state: dict[str, Any]) -> list[list[Any]]:
    """What the package says that the rows of ranks show."""
    epoch, left, end = state["epoch"], state["stop"], (state["subEpochs"], 0)
    plan = plan_of(state)
    rows = [read_by(plan, state, end)]
    if left == total(state):
        return rows
    part = 0
    while left > len(steps := plan.steps(epoch, part)):
        left, part = left - len(steps), part + 1
    rest = plan.replace(world_size=state["then"]).resume(plan.cursor(epoch, part, step=left))
    return [*rows, read_by(plan, state, (part, left)) + read_by(rest, state, end)]


NUMBERS = ("position", "sample", "sub-epoch")


def row_of(table: list[Any], name: str) -> list[int]:
    """The numbers of a row."""
    (row,) = (row[1:] for row in table if row[0][1] == name)
    return [int(text) for _, text in row]


def shown(table: list[Any]) -> list[list[Any]]:
    """What the rows of ranks show: number of the step, rank and samples."""
    rows = {row[0][1]: row[1:] for row in table if row[0][1] != "step"}
    samples = row_of(table, "sample")
    steps = [spread(row[1:]) for row in table if row[0][1] == "step"]
    ranks = [row for name, row in rows.items() if name not in NUMBERS]
    found = []
    for numbers, row in zip(steps, ranks, strict=True):
        at, reads = 0, []
        for columns, text in row:
            if text:
                number = int(re.sub(r"\D", "", numbers[at]))
                reads.append((number, int(re.sub(r"\D", "", text)), samples[at : at + columns]))
            at += columns
        assert at == len(samples)
        found.append(reads)
    return found


def spread(cells: list[Any]) -> list[str]:
    """The text of each column."""
    return [text for columns, text in cells for _ in range(columns)]


@pytest.mark.parametrize("by", ["served", "files"])
def test_the_packages_numbers(by: str, browser: Browser, served: str, site: Path) -> None:
    """Of drawn states of its controls, the table shows what the package reads."""
    page, wrong = watched(browser.new_page())
    page.goto(f"{served}idea.html" if by == "served" else (site / "idea.html").as_uri())
    random_ = random.Random(28 if by == "served" else 29)  # noqa: S311 (only for states)
    states = [
        (drawn_large if number % 2 else drawn)(random_)
        for number in range(STATES if by == "served" else 20)
    ]
    # not even the largest step of one sample reads an epoch that no order has
    last = {"n": 1, "ranks": 64, "batch": 64, "subEpochs": 1, "remainder": "carry"}
    states += [last | {"epoch": LAST_EPOCH, "seed": 3, "then": 64, "stop": 0}]
    for state, table in zip(states, page.evaluate(SET, states), strict=True):
        assert expected(state) == shown(table), state
        if state["remainder"] in ("spread", "drop"):
            positions = shown_of(state)
            assert [*positions] == row_of(table, "position"), state
            samples = plan_of(state).order.take(state["epoch"], positions.start, positions.stop)
            assert samples.tolist() == row_of(table, "sample"), state
    page.close()
    assert not wrong


def test_the_table_of_the_readme(look: Page, served: str) -> None:
    """It begins with the numbers of README's picture, fits the window, and hears the keyboard."""
    look.goto(f"{served}idea.html")
    expect(look.locator("#see-it")).to_be_visible()
    samples = ip.Shuffle(13, seed=1).take(0, 0, 13)  # as tests/test_docs.py compares its picture
    row = look.locator("#seen tr").nth(1).locator("td")
    expect(row).to_have_text([str(each) for each in samples])
    assert look.evaluate("innerWidth") == look.evaluate("document.documentElement.scrollWidth")
    labels = [each.bounding_box() for each in look.locator(".seen-control > span").all()]
    assert {each["height"] for each in labels if each} == {labels[0]["height"]}  # no label wraps
    look.locator("[data-control=n] input[type=range]").focus()
    look.keyboard.press("ArrowRight")
    expect(row).to_have_count(14)
    large = look.locator("[name=n]")
    large.fill("9000000000000000")
    large.press("Enter")
    expect(row).to_have_count(48)
    order = ip.Shuffle(9 * 10**15, seed=1)
    expect(row).to_have_text([str(each) for each in order.take(0, 0, 48)])


def test_by_the_keyboard(browser: Browser, served: str) -> None:
    """Tab reaches each control in the order seen, and keys, digits and Enter change it."""
    page, wrong = watched(browser.new_page())
    page.goto(f"{served}idea.html")
    state = {"n": 19, "ranks": 3, "batch": 2, "subEpochs": 2, "remainder": "pad", "epoch": 4}
    state |= {"seed": 7, "stop": 3, "then": 2}
    page.locator("[name=n]").focus()
    focused = page.locator(":focus")
    for name, value in state.items():
        if name == "remainder":
            expect(focused).to_have_class(re.compile("remainder"))
            page.keyboard.press("p")
            expect(focused).to_have_value("pad")
        else:
            expect(focused).to_have_attribute("name", name)
            page.keyboard.press("Control+A")
            page.keyboard.type(str(value))
            page.keyboard.press("Enter")
            page.keyboard.press("Tab")
            expect(focused).to_have_attribute("type", "range")
            expect(focused).to_have_value(str(value))
            page.keyboard.press("ArrowLeft")
            page.keyboard.press("ArrowRight")
            expect(focused).to_have_value(str(value))
        page.keyboard.press("Tab")
    expect(focused).to_have_class(
        re.compile("seen-scroll")
    )  # by arrows to the columns that don't fit
    assert expected(state) == shown(page.evaluate(SET, [{}])[0])
    page.locator("[name=epoch]").fill(str(2**32 - 1))
    page.keyboard.press("Enter")
    expect(page.locator("[name=epoch]")).to_have_value(str(LAST_EPOCH))
    page.close()
    assert not wrong
