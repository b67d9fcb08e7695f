"""Where a framework's settings are made: ``TrainingArguments(...)``, ``L.Trainer(...)``, ``Accelerator()``.

Each is noted as a site of kind "framework" with its parameters in the installed version, the values of those
that a setting of ours refers to, and the user's line that made it.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from functools import partial
from time import time_ns
from typing import Any

from ....wire.frameworks import Construction, constructions
from ..imports import when_imported
from . import describe
from .generation import Generating
from .sites import NO_BIRTH, Birth

#: Largest number of objects noted per constructor and line; one that makes more does so in a loop.
MOST = 20


class Frameworks:
    """``install`` waits for each framework to be imported; ``sites`` (Sites) takes what is made."""

    def __init__(self, sites: Any) -> None:
        self.sites = sites
        self.generated_ns: list[int] = []  # when ``generate`` was called
        self.settings: list[tuple[Any, dict[str, Any]]] = []  # dataclasses of settings, and their facts
        self.generating = Generating()

    def first_forwards(self, stamps: Sequence[int]) -> list[int]:
        """The numbers of the steps that begin a ``generate``. ``stamps``: the starts of the steps, in ns."""
        inside = [begun for begun in self.generated_ns if stamps[0] <= begun < stamps[-1]]
        found = {bisect_left(stamps, begun) for begun in inside}
        return sorted(at for at in found if at < len(stamps) - 1)

    def install(self) -> None:
        """Watch each framework's constructors as soon as its module is imported."""
        for one in constructions():
            when_imported(one.module, partial(self._watch, one))

    def _watch(self, one: Construction, module: Any) -> None:
        owner = getattr(module, one.name, None)
        if owner is None:
            return
        noted: Counter[Any] = Counter()
        generates, began = one.method == "generate", self.generated_ns.append

        def make(original: Any) -> Any:
            def constructed(*arguments: Any, **named: Any) -> Any:
                if generates:
                    began(time_ns())
                place = self._place(sys._getframe(1))
                noted[place] += 1
                enough = place is None or noted[place] > MOST
                found = None if enough else self._facts(one, original, arguments, named, sys._getframe(1))
                if generates:
                    made = self.generating.run(partial(original, *arguments, **named), arguments[0], place)
                else:
                    made = original(*arguments, **named)
                if not enough:
                    self._note(one, found, made, place, arguments[0] if arguments else None)
                return made

            return constructed

        self.sites.patches.replace(*((owner, one.method) if one.method else (module, one.name)), make)

    def _facts(
        self, one: Construction, original: Any, arguments: Any, named: Any, frame: Any
    ) -> tuple[dict[str, Any], Birth] | None:
        """Before the call, which may change its arguments."""
        try:
            thing = arguments[0] if one.method and arguments else None
            owner = thing if isinstance(thing, type) else type(thing)
            facts: dict[str, Any] = {
                "type": owner.__name__ if thing is not None else one.name,
                "construction": one.key,
            }
            facts.update(_passed(one, original, arguments, named))
            if any(each.instead for each in one.settings):
                facts["weights_bytes"] = sum(_bytes(part) for part in _modules(thing).values())
            birth = NO_BIRTH
            if one.method in ("__init__", "__post_init__"):
                whole = self.sites.birth("framework", frame, thing, original, arguments[1:], named)
                wanted = [each for each in whole.arguments if each["name"] in one.arguments or each["passed"]]
                birth = whole._replace(arguments=wanted)
            elif self.sites.arguments is not None:
                given = {name: named[name] for name in named if name in one.arguments}
                birth = Birth((), (), self.sites.arguments.named(frame, given))
            return facts, birth
        except Exception:  # an unknown version of the framework: no site is noted
            return None

    def _place(self, frame: Any) -> Any:
        try:
            return self.sites.place(frame)
        except Exception:  # never disturb the script for a site: none is noted
            return None

    def look_again(self) -> None:
        """Note the values that were set as attributes since (``changed``)."""
        for thing, facts in self.settings:
            now = {name: describe.plain(getattr(thing, name, None)) for name in facts["values"]}
            facts["changed"] = {name: now[name] for name in now if now[name] != facts["values"][name]}

    def _note(
        self, one: Construction, found: tuple[dict[str, Any], Birth] | None, made: Any, place: Any, thing: Any
    ) -> None:
        try:
            if found is not None:
                facts, birth = found
                if any(each.lines for each in one.settings):
                    facts["parts"] = _parts(made, {each.call for each in one.settings if each.call})
                if one.method == "__post_init__":
                    self.settings.append((thing, facts))
                self.sites.add("framework", place, None, facts, birth)
        except Exception:
            return


def _passed(one: Construction, original: Any, arguments: Any, named: Any) -> dict[str, Any]:
    """``parameters``: the names that the call takes; ``values``: of those that settings refer to."""
    wanted = one.arguments
    if one.method == "__post_init__":  # of a dataclass, whose fields are set by now
        self_ = arguments[0]
        parameters = list(inspect.signature(type(self_)).parameters)
        values = {name: getattr(self_, name) for name in parameters if name in wanted}
    else:
        signature = inspect.signature(original)
        parameters = [name for name in signature.parameters if name != "self"]
        bound = signature.bind_partial(*arguments, **named).arguments
        values = {name: bound[name] for name in bound if name in wanted}
        values.update((name, named[name]) for name in named if name in wanted)
    if one.fields is not None:
        fields = getattr(importlib.import_module(one.fields[0]), one.fields[1])
        parameters += [name for name in vars(fields()) if not name.startswith("_")]
    if one.passed_on:
        text = inspect.getsource(sys.modules[one.module])
        parameters += [name for name, mark in one.passed_on if mark in text]
    return {
        "parameters": sorted(set(parameters)),
        "values": {name: describe.plain(value) for name, value in values.items()},
    }


def _parts(made: Any, methods: set[str]) -> dict[str, list[str]]:
    """Attributes of ``made`` that are modules, the largest first, each with those of ``methods`` it has."""
    sizes = {name: _bytes(part) for name, part in _modules(made).items()}
    return {
        name: sorted(method for method in methods if hasattr(getattr(made, name), method))
        for name in sorted(sizes, key=lambda name: -sizes[name])
    }


def _modules(made: Any) -> dict[str, Any]:
    module = sys.modules["torch"].nn.Module
    return {name: part for name, part in list(vars(made).items()) if isinstance(part, module)}


def _bytes(module: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in module.parameters())
