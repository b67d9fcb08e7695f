"""Frameworks that own the training loop: what the user constructs, and which settings answer which finding.

One file per framework, with one name ``CONSTRUCTIONS``; nothing has to be registered. The runner reads which
calls to note, the server which of their arguments to offer. An argument is offered only where the installed
version has it, whatever is written here.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """Arguments that do away with what ``rule`` found inside the framework.

    ``arguments``: name to code; ``{workers}`` is the number that the rule proposes. All of them must be among
    the call's parameters, but for those in ``where_known``, which are left out where they are not. ``needs``:
    "bf16" where the device must have it, "fp16" where it must have no bf16. ``unless``: none of these may be
    set to something true.
    """

    rule: str
    arguments: dict[str, str]
    title: str
    needs: str = ""
    where_known: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    text: str = ""  # of a wait: what the waiting line of the framework's own code says


@dataclass(frozen=True)
class Construction:
    """A call in the user's file that holds settings.

    ``module`` and ``name``: the class; ``method``: what of it is called. ``fields``: (module, class) whose
    attributes the call takes as arguments as well. ``packages``: settings are about time in their lines only;
    empty: about all that the script runs, as a trainer's are.
    """

    module: str
    name: str
    packages: tuple[str, ...]
    settings: tuple[Setting, ...]
    method: str = "__init__"
    fields: tuple[str, str] | None = None
    called: tuple[str, ...] = ()  # how the call is written, where that is not ``name``

    @property
    def key(self) -> str:
        return self.module.partition(".")[0] + "." + self.name

    @property
    def arguments(self) -> set[str]:
        """All names that the settings speak of."""
        return {name for each in self.settings for name in (*each.arguments, *each.unless)}


def constructions() -> tuple[Construction, ...]:
    """Of all frameworks, those of one file together."""
    found: list[Construction] = []
    for entry in sorted(pkgutil.iter_modules(__path__), key=lambda entry: entry.name):
        found += importlib.import_module(__name__ + "." + entry.name).CONSTRUCTIONS
    return tuple(found)
