"""Attributes that an object computes once, without a lock that a fork could leave locked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

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
