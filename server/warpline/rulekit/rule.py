"""The base of every rule."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from functools import cached_property
from typing import ClassVar, Literal

from warpline.devices import Capability
from warpline.model.report import Severity
from warpline.rulekit.context import Context
from warpline.rulekit.draft import Draft
from warpline.rulekit.page import Page, parse_page

#: "unnecessary": what it refers to is to be taken out, editors fade it. "deprecated": there is a successor,
#: editors strike it through. "kernel": about one kernel, which can be looked into.
Tag = Literal["unnecessary", "deprecated", "kernel"]


class Rule:
    """One rule: a file in :mod:`warpline.rules`. Its module docstring is the rule's page."""

    area: ClassVar[
        str
    ]  #: "data", "precision", "fusion", "waiting", "many devices", "compiled", "kernels", "memory"
    severity: ClassVar[Severity | None] = None  #: None: by the share of the step that it would save
    #: rules that say the same less well: where this one finds something they stay silent
    covers: ClassVar[tuple[str, ...]] = ()
    #: it also tells what is too little alone: what adds up in a file is told together
    adds_up: ClassVar[bool] = False
    tags: ClassVar[tuple[Tag, ...]] = ()  #: a literal: it is read without importing the rule
    #: capabilities that the device must have, else the rule is not asked
    needs: ClassVar[tuple[Capability, ...]] = ("line costs",)

    @cached_property
    def name(self) -> str:
        """``loader-without-workers``, from the file's name."""
        return type(self).__module__.rpartition(".")[2].replace("_", "-")

    @property
    def page(self) -> Page:
        """The rule's documentation."""
        return parse_page(self.name, inspect.getdoc(sys.modules[type(self).__module__]) or "")

    def find(self, context: Context) -> Iterable[Draft]:
        """The findings in a profile, in any order."""
        raise NotImplementedError
