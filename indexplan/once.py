"""What an object computes once, or keeps a few of, without locks that a fork could leave locked."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

if TYPE_CHECKING:
    # it behaves like a property; behind a descriptor pyright finds no attribute of a protocol
    once = property
else:

    class once:  # noqa: N801 (a decorator)
        """A method without arguments whose result becomes an attribute at the first access.

        Like `functools.cached_property`, which up to Python 3.11 holds one lock for all objects of
        a class while it computes: a process that is forked meanwhile would wait for it forever.
        Here, two threads with a simultaneous first access both compute it.
        """

        def __init__(self, method: Callable[[Any], Any]) -> None:
            self.method = method
            self.name = method.__name__
            self.__doc__ = method.__doc__

        def __get__(self, instance: object | None, owner: type) -> Any:
            """Return the result; from now on Python finds it in the object itself."""
            if instance is None:
                return self
            return vars(instance).setdefault(self.name, self.method(instance))


class Latest(dict[Key, Value]):
    """The values that were made last, such as an epoch's: at most so many.

    Two threads that need the same value may both make it.

    Examples
    --------
    >>> kept = Latest(2)
    >>> [kept.get_or_make(epoch, str) for epoch in (0, 1, 0, 2)], kept
    (['0', '1', '0', '2'], {1: '1', 2: '2'})
    """

    def __init__(self, most: int) -> None:
        self.most = most

    def get_or_make(self, key: Key, make: Callable[[Key], Value]) -> Value:
        """Return the value of a key; make it where it is not kept, and forget the oldest."""
        try:
            return self[key]
        except KeyError:
            found = make(key)
        self.keep(key, found)
        return found

    def keep(self, key: Key, value: Value) -> None:
        """Keep a value, and forget the oldest if there are too many."""
        for old in list(self)[: max(0, len(self) + 1 - self.most)]:
            self.pop(old, None)  # another thread may have been here
        self[key] = value


def latest(most: int) -> Callable[[Callable[[Any, Key], Value]], Callable[[Any, Key], Value]]:
    """Let a method of one argument, such as an epoch, keep what it returned for the last few.

    Examples
    --------
    >>> class Squares:
    ...     @latest(2)
    ...     def of(self, number):
    ...         print(f"of {number}")
    ...         return number**2
    >>> squares = Squares()
    >>> squares.of(3), squares.of(3)
    of 3
    (9, 9)
    """

    def decorate(method: Callable[[Any, Key], Value]) -> Callable[[Any, Key], Value]:
        name = f"_latest{method.__name__}"

        @functools.wraps(method)
        def kept(self: Any, key: Key) -> Value:
            known = vars(self).get(name)
            if known is None:  # two threads may both be here, and both make the value
                known = vars(self).setdefault(name, Latest[Key, Value](most))
            found: Value = known.get_or_make(key, functools.partial(method, self))
            return found

        return kept

    return decorate
