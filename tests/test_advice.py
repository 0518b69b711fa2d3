"""What pages name in a sentence exists: names of our modules and values, and keywords of calls."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader

import indexplan as ip
import indexplan_fetch
import indexplan_torch
from indexplan.types import Stored, Stream
from indexplan_torch.live import LiveLoader

ROOT = Path(__file__).parents[1]
PAGES = [
    "README.md",
    *(
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "docs").rglob("*.md"))
        if path.parent.name != "reference" and path.name != "specification.md"  # whose are its own
    ),
]
MODULES = {
    "ip": "indexplan",
    "indexplan": "indexplan",
    **dict.fromkeys(("np", "numpy"), "numpy"),
    **{f"indexplan_{each}": f"indexplan_{each}" for each in ("fetch", "grain", "jax", "torch")},
}
ELSEWHERE = {"composer"}  # tested where it is installed
FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")


# What a page means by the name of a value: one of these classes has what it names.
KINDS: dict[str, tuple[Any, ...]] = {
    "plan": (ip.Plan,),
    "loader": (indexplan_torch.PlanLoader, LiveLoader, indexplan_fetch.ShardLoader, DataLoader),
    "order": (
        *(ip.Order, ip.Weighted, ip.DocumentWindows, ip.TokenWindows, ip.Packed, ip.Without),
        Stored,
    ),
    "mixture": (ip.Mixture,),
    "ledger": (ip.Ledger,),
    "shards": (ip.Shards,),
    "cursor": (ip.Cursor,),
    "stream": (Stream,),
}


def has(kind: type, name: str) -> bool:
    """Return whether values of a class have an attribute: of the class, or an argument of it."""
    return hasattr(kind, name) or name in inspect.signature(kind).parameters


def named(node: ast.expr) -> list[str]:
    """Return the names of a dotted expression; none if it is another."""
    text = ast.unparse(node)
    return text.split(".") if re.fullmatch(r"[^\W\d][\w.]*", text) else []


def resolved(names: list[str]) -> Any:
    """Return what dotted names stand for; None if they are not ours; raise if there is no such."""
    first, *rest = names or [""]
    if first in MODULES:
        found: Any = importlib.import_module(MODULES[first])
        for name in rest:
            if first == "indexplan_jax" and name in found.__all__:
                return None  # needs jax
            if not hasattr(found, name) and inspect.ismodule(found):
                importlib.import_module(f"{found.__name__}.{name}")
            found = getattr(found, name)
        return found
    if first in KINDS and rest:
        able = [kind for kind in KINDS[first] if has(kind, rest[0])]
        if not able:
            raise AttributeError(f"{first}.{rest[0]}")
        return getattr(able[0], rest[0], None) if len(rest) == 1 else None
    ours = (getattr(module, first, None) for module in (ip, indexplan_torch))
    return None if rest else next(filter(None, ours), None)


def problems(code: str) -> Iterator[str]:
    """Yield what is wrong with a piece of code in a sentence; nothing, if it is no Python."""
    if code.endswith(".json"):  # a file, though it reads as an attribute of a plan
        return
    try:
        tree = ast.parse(" ".join(code.split()))
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            try:
                resolved(named(node))
            except (AttributeError, ImportError) as error:
                if getattr(error, "name", None) not in ELSEWHERE:
                    yield f"{code}: {error}"
        if isinstance(node, ast.Call):
            yield from refused(code, node)


def refused(code: str, call: ast.Call) -> Iterator[str]:
    """Yield what a call of ours would not take: a keyword, or as many arguments."""
    names = named(call.func)
    try:
        function = resolved(names)
    except (AttributeError, ImportError):
        return  # said already
    if function is None or not callable(function) or isinstance(function, property):
        return
    if MODULES.get(names[0]) == "numpy":  # much of which has no signature
        return
    signature = inspect.signature(function)
    dots = [ast.unparse(each) == "..." for each in call.args]  # for what a sentence leaves out
    keywords = {each.arg: each.value for each in call.keywords if each.arg}
    methods = names[0] in KINDS and inspect.isfunction(function)
    given = [None] * (methods + dots.count(False))
    if function is indexplan_torch.PlanLoader:
        for name in set(keywords) & set(inspect.signature(DataLoader).parameters):
            del keywords[name]
        if unknown := set(keywords) - set(signature.parameters):
            yield f"{code}: no keyword {unknown}"
    try:
        (signature.bind_partial if any(dots) else signature.bind)(*given, **keywords)
    except TypeError as error:
        yield f"{code}: {error}"


@pytest.mark.parametrize("page", PAGES)
def test_what_is_named_exists(page: str) -> None:
    """Each inline name of ours resolves, and each call of ours has its parameters."""
    text = FENCED.sub("", (ROOT / page).read_text())
    assert [] == [each for code in INLINE.findall(text) for each in problems(code)]


def test_what_would_be_seen() -> None:
    """A misspelt name, keyword or a missing argument is found; what is right, or not ours, not."""
    wrong = ["ip.Suffle(3)", "ip.Shuffle(3, sed=1)", "ip.Shuffle()", "plan.batches_of(3)"]
    wrong += ["indexplan_torch.accelerate.gathered", "PlanLoader(dataset, plan, ledgr='a')"]
    wrong += ["loader.cursors", "np.flatnonzer(mask)"]
    right = ["plan.replace(world_size=8)", "indexplan_torch.accelerate.gather", "remainder="]
    right += ["ShardShuffle(..., grid='stream')"]
    assert [True] * len(wrong) == [bool([*problems(code)]) for code in wrong]
    assert [] == [each for code in right for each in problems(code)]
