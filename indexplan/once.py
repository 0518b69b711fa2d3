"""Answers that an object works out once, without a lock that a fork could leave locked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # what it is to who asks; pyright finds no attribute of a protocol behind a descriptor
    once = property
else:

    class once:  # noqa: N801 (a decorator)
        """A method without arguments that becomes an attribute when it is first asked for.

        As `functools.cached_property`, which up to Python 3.11 holds one lock for all objects of a
        class while it works: a process that is forked meanwhile would wait for it for ever. Here
        two threads that ask at once both work it out.
        """

        def __init__(self, method: Callable[[Any], Any]) -> None:
            self.method = method
            self.name = method.__name__
            self.__doc__ = method.__doc__

        def __get__(self, instance: object | None, owner: type) -> Any:
            """Return the answer; from now on Python finds it in the object itself."""
            if instance is None:
                return self
            return vars(instance).setdefault(self.name, self.method(instance))
