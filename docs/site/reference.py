"""What the reference is told of the code, where reading it without running it misleads."""

from __future__ import annotations

from typing import Any

from griffe import Alias, Attribute, Class, Extension, Function, Module, Parameter, Parameters


class Names(Extension):
    """Properties of `@once`, tuples made of their fields, functions named as their files."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Take `pieces` of `from .pieces import pieces` for the function, as Python does."""
        for package in (pkg, *(each for each in pkg.modules.values() if each.is_init_module)):
            for name, path in package.imports.items():
                member = package.members.get(name)
                if isinstance(member, Module) and path == f"{member.path}.{name}":
                    package.set_member(name, Alias(name, target=member[name], parent=package))

    def on_class(self, *, cls: Class, **_: Any) -> None:
        """Change the members of a class, when all of them are known."""
        for name, member in list(cls.members.items()):
            if isinstance(member, Function) and [str(each.value) for each in member.decorators] == [
                "once"
            ]:
                cls.set_member(name, attribute(member))
        if "NamedTuple" in [str(base) for base in cls.bases]:
            fields = [each for each in cls.members.values() if each.is_attribute]
            made = [Parameter(each.name, annotation=each.annotation) for each in fields]
            cls.set_member(
                "__init__", Function("__init__", parameters=Parameters(Parameter("self"), *made))
            )


def attribute(method: Function) -> Attribute:
    """Return the attribute that a method without arguments becomes."""
    made = Attribute(
        method.name,
        lineno=method.lineno,
        endlineno=method.endlineno,
        annotation=method.returns,
        docstring=method.docstring,
    )
    if made.docstring:
        made.docstring.parent = made
    made.labels.add("property")
    return made
