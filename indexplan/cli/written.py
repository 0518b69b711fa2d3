"""What a line of Python makes, such as "Epochs(Shuffle(100), 30)", without running it as code."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any

from indexplan.errors import IndexPlanError, did_you_mean, inside, invalid, shown
from indexplan.keywords import check
from indexplan.orders.base import Order
from indexplan.orders.registry import registered

RULE = "a call, a number, text, a list or a dict, as in Python"
MOST_BITS = 200  # of a power: more than any argument of an order needs


def order_as_written(
    text: str, known: Mapping[str, Any] | None = None, where: str = "an order"
) -> Order:
    """Return the order that a text makes, by calls of registered orders with literals in them.

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
        If the text is anything else, or what it calls raises an error.

    Examples
    --------
    >>> order_as_written("Epochs(BlockShuffle(10**6, block_size=4096), 10**5)").num_samples
    1000000
    >>> order_as_written("Epochs(Shuffle(seed=7), 30)", {"num_samples": 100})
    Epochs(order=Shuffle(num_samples=100, seed=7), epoch_size=30)
    """
    made = made_by(text, registered(), "Epochs(Shuffle(1000000), 50000)", where, known)
    if not isinstance(made, Order):
        cure = "write a call that makes one; `indexplan orders` lists them"
        raise invalid(where, "an order", made, cure)
    return made


def made_by(
    text: str,
    makers: Iterable[Callable[..., Any]],
    example: str,
    where: str,
    known: Mapping[str, Any] | None = None,
) -> Any:
    """Return what a text makes, as `order_as_written` does, by calls of `makers`."""
    cure = f"write it as {example}"
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        return _Reader((*makers,), cure).value(tree, known or {})
    except IndexPlanError as error:
        raise inside(where, error) from error
    except Exception as error:  # SyntaxError, RecursionError, a list as a key, too many arguments
        said = str(error).partition(" (<unknown>")[0]
        got = f"{shown(text)} ({type(error).__name__}: {said})"
        raise IndexPlanError(where, f"must be {RULE}", got, cure) from error


@dataclass(frozen=True)
class _Reader:
    """Makes what a syntax tree describes; only calls of `makers` are run."""

    makers: tuple[Callable[..., Any], ...]
    cure: str

    def value(self, node: ast.expr | None, known: Mapping[str, Any] = {}) -> Any:
        """Return the value of a part of the text."""
        match node:
            case ast.Call(ast.Name("range"), args, []):  # whose repr an order of a subset has
                return range(*map(self.value, args))
            case ast.Call():
                return self.called(node, known)
            case ast.List() | ast.Tuple():
                return (list if isinstance(node, ast.List) else tuple)(map(self.value, node.elts))
            case ast.Dict():
                keys = [*map(self.value, node.keys)]
                if len({*keys}) < len(keys):  # Python would drop the first of two
                    raise self.invalid(node, "a dict that gives each key once")
                return dict(zip(keys, map(self.value, node.values), strict=True))
            case ast.BinOp(ast.Constant(int(base)), ast.Pow(), ast.Constant(int(power))):
                if power * base.bit_length() <= MOST_BITS:
                    return base**power
        try:
            return ast.literal_eval(node)  # type: ignore[arg-type]  # None, of **, is refused too
        except ValueError:
            raise self.invalid(node, RULE) from None

    def called(self, node: ast.Call, known: Mapping[str, Any]) -> Any:
        """Return what a call makes, with what is known where it leaves that out."""
        make = self.maker(node.func)
        name, parameters = make.__name__, signature(make).parameters
        named = {str(each.arg): each.value for each in node.keywords}
        if len(named) < len(node.keywords):
            raise self.invalid(node, "a call that gives each argument once")
        check(name, {each: ast.unparse(value) for each, value in named.items()}, parameters)
        given = signature(make).bind_partial(*node.args, **named).arguments
        through = known if "order" in parameters and "num_samples" not in parameters else {}
        for each, value in given.items():
            given[each] = self.value(value, through if each == "order" else {})
        for each, parameter in parameters.items():
            if each in given or parameter.default is not Parameter.empty:
                continue
            # the sizes that are known are those of shards, and no list of the parts of a split
            a_column = any(kind in str(parameter.annotation) for kind in ("Column", "Kept"))
            if each not in known or (each == "sizes" and not a_column):
                more = f"as `indexplan orders {name}` describes it"
                more = "or give --num-samples" if each == "num_samples" else more
                cure = f"add {each}=..., {more}"
                raise IndexPlanError(f"{each} of {name}", "must be given", "none", cure)
            given[each] = known[each]
        return make(**given)

    def maker(self, node: ast.expr) -> Callable[..., Any]:
        """Return what a call names."""
        name = ast.unparse(node).removeprefix("ip.").removeprefix("indexplan.")
        found = [each for each in self.makers if each.__name__ == name]
        if not found:
            names = sorted(each.__name__ for each in self.makers)
            cure = did_you_mean(name, names) + "give --import for orders of your own"
            raise invalid("the name", f"one of {', '.join(names)}", name, cure)
        if len(found) > 1:
            shared = " and ".join(f"{each.__module__}.{each.__qualname__}" for each in found)
            raise IndexPlanError(
                "the name", "must be that of one class", shared, "rename one of them"
            )
        return found[0]

    def invalid(self, node: ast.expr | None, rule: str) -> IndexPlanError:
        """Return the error about a part of the text."""
        got = "**" if node is None else ast.unparse(node)
        cure = did_you_mean(got, [each.__name__ for each in self.makers]) + self.cure
        return IndexPlanError("each part", f"must be {rule}", got, cure)
