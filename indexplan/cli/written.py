"""What a line of Python makes, such as "Epochs(Shuffle(100), 30)", without running it as code."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from inspect import Parameter, signature
from typing import Any

from indexplan.errors import IndexPlanError, did_you_mean, inside, shown
from indexplan.orders.base import Order
from indexplan.orders.columns import Column
from indexplan.orders.registry import registered

RULE = "written with calls, numbers, text, lists and dicts, as in Python"
DESCRIBED = "as `indexplan orders` describes it"
MOST_BITS = 200  # of a power: more than any argument of an order needs
# functions that make orders, or what orders are made of, and the module of each
HELPERS = {
    "Split": "indexplan.orders.split",
    "curriculum": "indexplan.orders.curricula",
    "folds": "indexplan.orders.split",
    "pieces": "indexplan.orders.packed",
    "repeat_factors": "indexplan.orders.rare_categories",
}
NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
At = ast.expr | ast.keyword | tuple[int, int] | None  # a part, or a line and a column from 0 on
Makers = Mapping[str, list[Callable[..., Any]]]


def makers() -> dict[str, list[Callable[..., Any]]]:
    """Return what the text of an order may call, by name: one thing, unless classes share it."""
    found: dict[str, list[Callable[..., Any]]] = {}
    for kind in registered():
        found.setdefault(kind.__name__, []).append(kind)
    for name, module in HELPERS.items():
        found.setdefault(name, []).append(getattr(import_module(module), name))
    return {**found, "range": [range]}


def order_as_written(
    text: str, known: Mapping[str, Any] | None = None, where: str = "an order"
) -> Order:
    """Return the order that a text makes, which may hold orders and literals, but no other code.

    The only names are those of registered orders, and those in `HELPERS`, such as `Split`.

    Parameters
    ----------
    text : str
        Such as "Subset(Shuffle(3), [4, 7, 8], 10)"; columns as paths of their `.npy` files.
    known : mapping, optional
        Values of required arguments that the text may leave out, such as `num_samples`. They are
        filled in where the whole dataset is meant: in the outermost call, or, if that has an
        argument `order` and no `num_samples`, in the call that it has there.
    where : str, default "an order"
        What errors call the text, such as "--order".

    Raises
    ------
    IndexPlanError
        If the text is anything else, or what it calls raises an error; it names the place.

    Examples
    --------
    >>> order_as_written("Epochs(BlockShuffle(10**6, block_size=4096), 10**5)").num_samples
    1000000
    >>> order_as_written("Epochs(Shuffle(seed=7), 30)", {"num_samples": 100})
    Epochs(order=Shuffle(num_samples=100, seed=7), epoch_size=30)
    """
    made = made_by(text, makers(), "Epochs(Shuffle(1000000), 50000)", where, known)
    if not isinstance(made, Order):
        cure = "write a call that makes one; `indexplan orders` lists them"
        raise IndexPlanError(where, "must be an order", shown(made), cure)
    return made


def made_by(
    text: str, makers: Makers, example: str, where: str, known: Mapping[str, Any] | None = None
) -> Any:
    """Return what a text makes, as `order_as_written` does, by calls of `makers`."""
    reader = _Reader(text, makers, example, where)
    try:
        return reader.value(ast.parse(text[reader.begin :], mode="eval").body, known or {})
    except IndexPlanError:
        raise
    except SyntaxError as error:
        at = None if error.offset is None else (error.lineno or 1, max(error.offset - 1, 0))
        raise reader.wrong(at, RULE, f"{shown(text)} ({error.msg})") from None
    except Exception:  # RecursionError, a list as a key, ...
        raise reader.wrong(None, RULE, shown(text)) from None


@dataclass(frozen=True)
class _Reader:
    """Makes what a syntax tree describes; only calls of `makers` are run."""

    text: str
    makers: Makers
    example: str
    where: str

    @property
    def begin(self) -> int:
        """How many characters come before the tree: spaces, which Python would not take there."""
        return len(self.text) - len(self.text.lstrip())

    def value(self, node: ast.expr, known: Mapping[str, Any] = {}) -> Any:
        """Return the value of a part of the text."""
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str | None):
            return node.value
        if isinstance(node, ast.List | ast.Tuple):
            return (list if isinstance(node, ast.List) else tuple)(map(self.value, node.elts))
        if isinstance(node, ast.Dict) and None not in node.keys:
            return dict(self.items(node))
        if isinstance(node, ast.UnaryOp | ast.BinOp):
            return self.number(node)
        if isinstance(node, ast.Subscript) or (
            isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call)
        ):
            return self.part(node)
        if isinstance(node, ast.Call):
            return self.called(node, known)
        if isinstance(node, ast.Name) and node.id in self.makers:
            raise self.wrong(node, "a call, with brackets", node.id, f"write it as {node.id}(...)")
        if isinstance(node, ast.Name):
            self.maker(node)
        raise self.wrong(node, RULE, ast.unparse(node))

    def part(self, node: ast.Subscript | ast.Attribute) -> Any:
        """Return an item, such as of a split, or a field, such as of pieces."""
        held = self.value(node.value)
        if isinstance(node, ast.Subscript):
            at = self.value(node.slice)
            return self.tried(node, lambda: held[at])
        if node.attr not in getattr(type(held), "__dataclass_fields__", {}):
            raise self.wrong(node, RULE, ast.unparse(node))
        return getattr(held, node.attr)

    def items(self, node: ast.Dict) -> Iterator[tuple[Any, Any]]:
        """Yield the items of a dict, whose keys differ: Python would drop the first of two."""
        seen: set[Any] = set()
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None:
                name = self.value(key)
                if name in seen:
                    raise self.wrong(key, "given once", shown(name), "leave one out", "a key")
                seen.add(name)
                yield name, self.value(value)

    def number(self, node: ast.UnaryOp | ast.BinOp) -> Any:
        """Return a negative number, a product or a power."""
        if isinstance(node, ast.UnaryOp):
            value = self.value(node.operand)
            if isinstance(node.op, ast.USub) and isinstance(value, int | float):
                return -value
        elif isinstance(node.op, ast.Mult | ast.Pow):
            left, right = self.value(node.left), self.value(node.right)
            if isinstance(left, int) and isinstance(right, int):
                if isinstance(node.op, ast.Mult):
                    return left * right
                if right >= 0 and right * left.bit_length() <= MOST_BITS:
                    return left**right
        raise self.wrong(node, RULE, ast.unparse(node))

    def called(self, node: ast.Call, known: Mapping[str, Any]) -> Any:
        """Return what a call makes, with what is known where it leaves that out."""
        make = self.maker(node.func)
        for each in (*node.args, *node.keywords):
            if isinstance(each, ast.Starred) or (isinstance(each, ast.keyword) and not each.arg):
                raise self.wrong(each, "an argument, without a star", ast.unparse(each))
        if make is range:
            if node.keywords:
                named = node.keywords[0]
                raise self.wrong(named, "given without its name", ast.unparse(named))
            numbers = [self.value(each) for each in node.args]
            return self.tried(node, lambda: range(*numbers))
        written = self.arguments(node, make)
        parameters = signature(make).parameters
        through = known if "order" in parameters and "num_samples" not in parameters else {}
        given = {
            name: self.value(each, through if name == "order" else {})
            for name, each in written.items()
        }
        for name, parameter in parameters.items():
            if name in given or not _is_required(parameter):
                continue
            if name not in known or not _fits(known[name], parameter):
                page = f"`indexplan orders {make.__name__}`"
                described = f"as {page} describes it" if _has_page(make) else DESCRIBED
                other = "or give --num-samples" if name == "num_samples" else described
                what = f"{name} of {ast.unparse(node.func)}"
                raise self.wrong(node, "given", "none", f"add {name}=..., {other}", what)
            given[name] = known[name]
        return self.tried(node, lambda: make(**given))

    def maker(self, node: ast.expr) -> Callable[..., Any]:
        """Return what a call names."""
        name = ast.unparse(node).removeprefix("ip.").removeprefix("indexplan.")
        found = self.makers.get(name, [])
        if not found:
            rule = f"one of {', '.join(sorted(self.makers))}"
            cure = did_you_mean(name, self.makers) + "give --import for orders of your own"
            raise self.wrong(node, rule, shown(name), cure, "the name")
        if len(found) > 1:
            shared = " and ".join(f"{each.__module__}.{each.__qualname__}" for each in found)
            raise self.wrong(node, "the name of one class", shared, "rename one of them")
        return found[0]

    def arguments(self, node: ast.Call, make: Callable[..., Any]) -> dict[str, ast.expr]:
        """Return the arguments of a call by name, or raise unless it has parameters for them."""
        maker = ast.unparse(node.func)
        parameters = signature(make).parameters
        places = [name for name, each in parameters.items() if each.kind is NAMED[0]]
        for extra in node.args[len(places) :]:
            rule = f"one of the {len(places)} arguments of {maker} that need no name"
            raise self.wrong(extra, rule, ast.unparse(extra), "leave it out, or give it by name")
        named = dict(zip(places, node.args, strict=False))
        for each in node.keywords:
            name = str(each.arg)
            if name not in parameters:
                cure = did_you_mean(name, parameters) + "give one of these"
                rule = f"one of {', '.join(parameters)}"
                raise self.wrong(each, rule, shown(name), cure, f"an argument of {maker}")
            if name in named:
                raise self.wrong(each, "given once", ast.unparse(each), "leave one out", name)
            named[name] = each.value
        return named

    def tried(self, node: ast.expr, make: Callable[[], Any]) -> Any:
        """Return what a call makes; its errors name the place, also Python's, such as TypeError."""
        try:
            return make()
        except IndexPlanError as error:
            raise inside(self.place(node), error) from error
        except Exception as error:
            got = f"{ast.unparse(node)} ({type(error).__name__}: {error})"
            raise self.wrong(node, DESCRIBED, got, "write it so") from error

    def wrong(self, at: At, rule: str, got: str, cure: str = "", what: str = "") -> IndexPlanError:
        """Return the error about a place of the text."""
        if not cure:
            cure = did_you_mean(got, self.makers) + f"write it as {self.example}"
        where = ": ".join(filter(None, [self.place(at), what]))
        return IndexPlanError(where, f"must be {rule}", got, cure)

    def place(self, at: At) -> str:
        """Return the place of a part of the text in words, counted in characters from 1."""
        if at is None:
            return self.where
        lines = self.text[self.begin :].split("\n")
        if isinstance(at, tuple):
            line, column = at
        else:  # whose columns are bytes
            line, column = at.lineno, len(lines[at.lineno - 1].encode()[: at.col_offset].decode())
        before = self.begin + sum(len(each) + 1 for each in lines[: line - 1])
        return f"{self.where}, character {before + column + 1}"


def _has_page(make: Callable[..., Any]) -> bool:
    """Return whether `indexplan orders` describes it, as it does not `--balance`."""
    return make.__name__ in HELPERS or (isinstance(make, type) and issubclass(make, Order))


def _is_required(parameter: Parameter) -> bool:
    return parameter.kind in NAMED and parameter.default is Parameter.empty


def _fits(value: Any, parameter: Parameter) -> bool:
    """Return whether a known value is meant: the sizes of a split are no column."""
    return not isinstance(value, Column) or "Column" in str(parameter.annotation)
