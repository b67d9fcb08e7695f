"""All rules. One file, one rule: the file's name is the rule's name, its docstring is the rule's page.

A new file is found by itself. What is asked here by name is read from the files without importing
them, since a rule imports LibCST and the language server starts without it.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from warpline.rulekit.page import Page, parse_page

if TYPE_CHECKING:
    from warpline.rulekit.rule import Rule

_FOLDER = Path(__file__).parent


@cache
def names() -> tuple[str, ...]:
    """The names of all rules; none is imported."""
    found = (path.stem for path in _FOLDER.glob("*.py") if not path.stem.startswith("_"))
    return tuple(sorted(stem.replace("_", "-") for stem in found))


@cache
def page(name: str) -> Page:
    """The page of the rule ``name``, which is not imported. Raises KeyError when there is none."""
    return parse_page(name, ast.get_docstring(_parsed(name)) or "")


@cache
def tags(name: str) -> tuple[str, ...]:
    """``Rule.tags`` of the rule ``name``, which is not imported; () when there is none."""
    if name not in names():
        return ()
    for kind in _parsed(name).body:
        for line in kind.body if isinstance(kind, ast.ClassDef) else ():
            if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "tags":
                found: tuple[str, ...] = ast.literal_eval(line.value)
                return found
    return ()


@cache
def rules() -> tuple[Rule, ...]:
    """All rules, by area and name. Raises TypeError for a module without exactly one rule: a mistake in the
    program, found by the tests."""
    from warpline.rulekit.rule import Rule

    found: list[Rule] = []
    for name in names():
        module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
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
    """The rule with this name, or None."""
    return next((rule for rule in rules() if rule.name == name), None)


def _parsed(name: str) -> ast.Module:
    if name not in names():
        raise KeyError(name)
    return ast.parse((_FOLDER / f"{name.replace('-', '_')}.py").read_text(encoding="utf-8"))
