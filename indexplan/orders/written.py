"""An order from the Python text that makes it, such as "Epochs(Shuffle(100), 30)"."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from importlib import import_module
from inspect import signature
from typing import Any

from indexplan.errors import IndexPlanError, did_you_mean, wrong
from indexplan.orders.base import Order
from indexplan.orders.registry import registered

RULE = "written as in Python, of orders, numbers, text, lists and dicts"
CURE = 'write it as "Epochs(Shuffle(1000000), 50000)", or build the plan in Python'
MOST_BITS = 200  # of a power: more than any argument of an order needs
# functions that make orders, or parts of orders, and the module of each
MAKERS = {
    "curriculum": "indexplan.orders.curricula",
    "Split": "indexplan.orders.split",
    "folds": "indexplan.orders.split",
}


def is_written(text: str) -> bool:
    """Return whether a text is a call, as in Python."""
    return re.match(r"\s*[A-Za-z_][\w.]*\s*\(", text) is not None


def order_as_written(text: str) -> Order:
    """Return the order that a text makes, which may hold orders and literals, but no other code.

    The only names are those of registered orders, and those in `MAKERS`, such as `Split`.

    Parameters
    ----------
    text : str
        Such as "Subset(Shuffle(3), [4, 7, 8], 10)"; columns as paths of their `.npy` files.

    Raises
    ------
    IndexPlanError
        If the text is anything else, or what it calls raises an error.

    Examples
    --------
    >>> order_as_written("Epochs(BlockShuffle(10**6, block_size=4096), 10**5)").num_samples
    1000000
    """
    try:
        made = _value(ast.parse(text.strip(), mode="eval").body)
    except IndexPlanError:
        raise
    except Exception:  # SyntaxError, RecursionError, a list as a key, 0 to the power of -1, ...
        raise wrong("an order", RULE, text, CURE) from None
    if not isinstance(made, Order):
        raise wrong("an order", "text that makes an Order", made, CURE)
    return made


def _value(node: ast.expr) -> Any:
    """Return the value of a part of the text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str | None):
        return node.value
    if isinstance(node, ast.List | ast.Tuple):
        return (list if isinstance(node, ast.List) else tuple)(map(_value, node.elts))
    if isinstance(node, ast.Dict) and None not in node.keys:
        keys = _different([_value(key) for key in node.keys if key is not None])
        return dict(zip(keys, map(_value, node.values), strict=True))
    if isinstance(node, ast.UnaryOp | ast.BinOp):
        return _number(node)
    if isinstance(node, ast.Subscript):  # of a split, or of folds
        return _tried(node, lambda: _value(node.value)[_value(node.slice)])
    if isinstance(node, ast.Call):
        return _called(node)
    raise wrong("an order", RULE, ast.unparse(node), CURE)


def _number(node: ast.UnaryOp | ast.BinOp) -> Any:
    """Return a negative number, a product or a power."""
    if isinstance(node, ast.UnaryOp):
        value = _value(node.operand)
        if isinstance(node.op, ast.USub) and isinstance(value, int | float):
            return -value
    else:
        left, right = _value(node.left), _value(node.right)
        if isinstance(left, int) and isinstance(right, int):
            if isinstance(node.op, ast.Mult):
                return left * right
            if isinstance(node.op, ast.Pow) and 0 <= right * left.bit_length() <= MOST_BITS:
                return left**right
    raise wrong("an order", RULE, ast.unparse(node), CURE)


def names() -> dict[str, Any]:
    """Return what a text may call, by name."""
    known: dict[str, Any] = {kind.__name__: kind for kind in registered()}
    known |= {each: getattr(import_module(MAKERS[each]), each) for each in MAKERS}
    return known | {"range": range}


def _different(given: list[Any]) -> list[Any]:
    """Return keys or names if each is given once; Python would drop the first of two equal ones."""
    seen: set[Any] = set()
    for each in given:
        if each in seen:
            raise wrong("each key and argument of an order", "given once", each, "leave one out")
        seen.add(each)
    return given


def _called(node: ast.Call) -> Any:
    name = ast.unparse(node.func).removeprefix("ip.").removeprefix("indexplan.")
    known = names()
    if name not in known:
        rule = f"one of {', '.join(sorted(known))}"
        cure = did_you_mean(name, known) + "import the module that registers others"
        raise wrong("a name in an order", rule, name, cure)
    if any(isinstance(each, ast.Starred) for each in node.args) or None in [
        each.arg for each in node.keywords
    ]:
        raise wrong("an order", RULE, ast.unparse(node), CURE)
    _different([each.arg for each in node.keywords])
    _check_names(name, known[name], [each.arg for each in node.keywords if each.arg is not None])
    values = [_value(each) for each in node.args]
    named = {each.arg: _value(each.value) for each in node.keywords if each.arg is not None}
    return _tried(node, lambda: known[name](*values, **named))


def _check_names(maker: str, make: Callable[..., Any], given: list[str]) -> None:
    """Raise unless what is called has parameters with these names; `range` has none."""
    parameters = {} if make is range else signature(make).parameters
    for name in given:
        if name not in parameters:
            cure = did_you_mean(name, parameters) + "`indexplan orders` describes it"
            rule = f"one of {', '.join(parameters)}" if parameters else "given without its name"
            raise wrong(f"an argument of {maker}", rule, name, cure)


def _tried(node: ast.expr, make: Callable[[], Any]) -> Any:
    """Return what a call makes; Python's own errors, such as TypeError, become `IndexPlanError`."""
    try:
        return make()
    except IndexPlanError:
        raise
    except Exception as error:
        rule = "as `indexplan orders` describes it"
        words = f"{type(error).__name__}: {error}"
        raise wrong(ast.unparse(node), rule, words, "write it so") from None
