"""Answers that an object works out once, without a lock that a fork could leave locked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Answer = TypeVar("Answer")


class once(Generic[Answer]):  # noqa: N801 (a decorator)
    """A method without arguments that becomes an attribute when it is first asked for.

    As `functools.cached_property`, which up to Python 3.11 holds one lock for all objects of a
    class while it works: a process that is forked meanwhile would wait for it for ever. Here two
    threads that ask at once both work it out.
    """

    def __init__(self, method: Callable[[Any], Answer]) -> None:
        self.method = method
        self.name = method.__name__
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> once[Answer]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Answer: ...
    def __get__(self, instance: object | None, owner: type) -> once[Answer] | Answer:
        """Return the answer; from now on Python finds it in the object itself."""
        if instance is None:
            return self
        answer: Answer = vars(instance).setdefault(self.name, self.method(instance))
        return answer
