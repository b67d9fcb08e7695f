"""The base of every rule."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import ClassVar

from warpline.model.report import Severity
from warpline.rulekit.context import Context
from warpline.rulekit.draft import Draft
from warpline.rulekit.page import Page, parse_page


class Rule:
    """One rule: a file in :mod:`warpline.rules` whose module docstring is its page."""

    area: ClassVar[
        str
    ]  #: "data", "precision", "fusion", "waiting", "many devices", "compiled", "kernels", "memory"
    severity: ClassVar[Severity] = "warning"
    needs_gpu: ClassVar[bool] = False  #: never asked about a run on a CPU

    @property
    def name(self) -> str:
        """``loader-without-workers``, from the file's name."""
        return type(self).__module__.rpartition(".")[2].replace("_", "-")

    @property
    def page(self) -> Page:
        return parse_page(self.name, sys.modules[type(self).__module__].__doc__ or "")

    def find(self, context: Context) -> Iterable[Draft]:
        """The findings in a profile, in any order."""
        raise NotImplementedError
