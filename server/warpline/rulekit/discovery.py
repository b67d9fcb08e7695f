"""The rules there are: one class in each module of :mod:`warpline.rules`, no list to keep."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache

from warpline.rulekit.rule import Rule


@cache
def rules() -> tuple[Rule, ...]:
    """All rules, by area and name. A module that cannot be imported or has not exactly one rule
    raises: it is a mistake in the program, found by the tests."""
    package = importlib.import_module("warpline.rules")
    found: list[Rule] = []
    for entry in pkgutil.iter_modules(package.__path__):
        if entry.name.startswith("_"):
            continue
        module = importlib.import_module(f"warpline.rules.{entry.name}")
        own = [
            kind
            for _, kind in inspect.getmembers(module, inspect.isclass)
            if issubclass(kind, Rule) and kind.__module__ == module.__name__
        ]
        if len(own) != 1:
            raise TypeError(f"{module.__name__} must hold exactly one rule, not {len(own)}")
        found.append(own[0]())
    return tuple(sorted(found, key=lambda rule: (rule.area, rule.name)))


def rule_named(name: str) -> Rule | None:
    return next((rule for rule in rules() if rule.name == name), None)
