"""Frameworks that own the training loop: what the user constructs, and which settings answer which finding.

One file per framework, with ``CONSTRUCTIONS``, and ``MODELS`` where it has models, ``CHECKPOINTING`` where
these have a method for that; nothing has to be registered. The runner reads which calls to note, the server
which of their arguments to offer. An argument is offered only where the installed version has it, whatever is
written here.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from functools import cache
from types import ModuleType

#: Dtypes that a setting may name.
HALVES = ("bfloat16", "float16")


@dataclass(frozen=True)
class Setting:
    """What does away with something that ``rule`` found inside the framework.

    ``arguments``: name to code. In the code stand ``{workers}`` for the number that the rule proposes,
    ``{twice}`` for twice the value that the run recorded, a name of ``HALVES`` for torch's dtype. All of them
    must be among the call's parameters, but for those in ``where_known``, which are left out where they are
    not. ``lines``: statements below the construction, with ``{made}`` for the name that it was given and
    ``{part}`` for its largest module; ``call``: the method that they call, which the object must have.
    ``undo``: the call itself is what to do without: its statement goes, or the flag by which it runs.
    ``beside``: methods and attributes that only serve such a call: the flag may decide these too.
    ``classes``: pairs of names: the call's first argument is made by the second class, and not by the first.
    ``renamed``: the class to make in its place, whose first two arguments are the same, and which has all of
    the names of the others. ``instead``: what to call on the same object in its place, if the device has room
    for all its weights.
    ``written``: (name, value) as a script may write it on an object that the call is made of. The only such
    place is edited, unless the call itself passes the argument.

    The conditions: ``needs``: "bf16" where the device must have it, "fp16" where it must have no bf16,
    "graphs" where it must replay CUDA graphs.
    ``unless``: none of these may be set to something true. ``without``: what the user's file must not say,
    since it does not go with the setting. ``unfused``: what the user's files must not say, and the call not
    set, where an optimizer is fused. ``only``: the values that an argument must have; None where the run does
    not say which one it has.
    ``inference``: no backward pass ran. ``frozen``: the steps train this package's adapters, which have a
    type of their own, and few of the weights beside them. ``first``: it is better than an edit of the user's
    own loop. ``by_length``: it orders the rows by their length.
    """

    rule: str
    arguments: dict[str, str]
    title: str
    needs: str = ""
    where_known: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    without: str = ""
    unfused: tuple[str, ...] = ()
    text: str = ""  # of a wait: what the waiting line of the framework's own code says
    functions: tuple[str, ...] = ()  # of the framework's, whose time is what the rule is about
    operators: tuple[str, ...] = ()  # the same of operators, once the call was made
    only: tuple[tuple[str, tuple[object, ...]], ...] = ()
    inference: bool = False
    frozen: str = ""
    first: bool = False
    by_length: bool = False
    lines: tuple[str, ...] = ()
    call: str = ""
    undo: bool = False
    beside: tuple[str, ...] = ()
    instead: str = ""
    classes: tuple[tuple[str, str], ...] = ()
    renamed: str = ""
    written: tuple[tuple[str, object], ...] = ()

    @property
    def autocasts(self) -> bool:
        """Whether the framework runs the forward pass under autocast where this is set."""
        return (
            self.rule == "fp32-matmul"
            and not (self.inference or self.frozen)
            and "tf32" not in self.arguments
        )


@dataclass(frozen=True)
class Construction:
    """A call in the user's file that holds settings.

    ``module`` and ``name``: the class, or the function where ``method`` is ""; ``method``: what of the class
    is called. ``fields``: (module, class) whose attributes the call takes as arguments as well.
    ``passed_on``: arguments that it takes by ``**kwargs``, each with what the module's text has where it
    does. ``packages``: settings are about time in their lines only; empty: about all that the script runs, as
    a trainer's are. ``files``: folders of its code, where it waits; empty: the module's package.
    ``parsers``: methods that make it from the command line, a dict or a file. ``within``: (call, argument) of
    another call that makes it, with a dict of its arguments. ``accumulates``: the argument that says of how
    many batches the optimizer takes the gradients at once. ``sizes``: arguments that are sizes of layers, and
    that may be rounded up; ``makes``: the modules of the constructions that make these layers. ``epochs``:
    the argument that says how often the loader is gone through; -1: without end.
    """

    module: str
    name: str
    packages: tuple[str, ...]
    settings: tuple[Setting, ...]
    method: str = "__init__"
    fields: tuple[str, str] | None = None
    called: tuple[str, ...] = ()  # how the call is written, where that is not ``name``
    passed_on: tuple[tuple[str, str], ...] = ()
    files: tuple[str, ...] = ()
    parsers: tuple[str, ...] = ()
    within: tuple[tuple[str, str], ...] = ()
    accumulates: str = ""
    sizes: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    epochs: str = ""

    @property
    def key(self) -> str:
        """``package.Class``, with the method's name where it is not the constructor. Used in facts and
        tests."""
        package = self.module.partition(".")[0]
        method = "" if self.method in ("", "__init__", "__post_init__", "generate") else "." + self.method
        return package + "." + self.name + method

    @property
    def owned(self) -> tuple[str, ...]:
        """Folders of the framework's code."""
        return self.files or (self.module.partition(".")[0],)

    @property
    def arguments(self) -> set[str]:
        """All names that the settings refer to."""
        return {
            name
            for each in self.settings
            for name in (*each.arguments, *each.unless, *each.unfused, *(name for name, _ in each.only))
        } | {*self.sizes, *(one for one in (self.accumulates, self.epochs) if one)}


def constructions() -> tuple[Construction, ...]:
    """The constructions of all frameworks, one file after the other."""
    found: list[Construction] = []
    for module in _files():
        found += module.CONSTRUCTIONS
    return tuple(found)


def models() -> tuple[str, ...]:
    """Patterns of dotted names of calls that make a model: a ``torch.nn.Module`` with code of its own."""
    return tuple(pattern for module in _files() for pattern in getattr(module, "MODELS", ()))


def switches_of_checkpointing() -> tuple[str, ...]:
    """Methods, one of each model's own class, that have it compute activations again."""
    return tuple(name for module in _files() for name in getattr(module, "CHECKPOINTING", ()))


@cache  # a folder is read once, not for each report
def _files() -> tuple[ModuleType, ...]:
    names = sorted(entry.name for entry in pkgutil.iter_modules(__path__))
    return tuple(importlib.import_module(__name__ + "." + name) for name in names)
