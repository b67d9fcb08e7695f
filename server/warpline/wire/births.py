"""Where things were made and set: frames, arguments with their holders, settings, lines that ran before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .places import Placed


@dataclass(frozen=True)
class UserFrame(Placed):
    """A frame of the user's that was running; ``line`` is the one it was at."""

    file: str
    line: int
    function: str


@dataclass(frozen=True)
class Holder(Placed):
    """The place in the user's files that holds an argument's value: change it there.

    ``kind``:

    - ``"call"``: a literal in the call itself
    - ``"default"``: the default of a parameter of the user's function
    - ``"variable"``: an assignment to a variable, of a module or a function
    - ``"entry"``: an entry of a dict, the item assignment or ``update`` that came last
    - ``"field"``: a field of a class body (dataclass or plain), or an attribute assignment
    - ``"option"``: the default of a command-line option (its ``add_argument``)
    - ``"command line"``: a word of the command line; the place is the option's ``add_argument``
    - ``"file"``: a line of a YAML, JSON or TOML file
    - ``"text"``: an entry of a text of several lines in the script, which its own code reads
    - ``"environment"``: an environment variable; the place is the line that reads it
    - ``"computed"``: an expression that is not a literal and could not be followed further

    ``by``: how it was found. ``"flow"``: the call's expression was followed through the frames that
    were running; ``"identity"``: the very object was met again; ``"value"``: the only place that ran
    with this name and this value.
    """

    kind: str
    file: str
    line: int
    column: int = -1  # 0-based, in code points, where the value's expression begins; -1: not known
    name: str = ""  # of the variable, key, field, option or environment variable
    by: str = "flow"


@dataclass(frozen=True)
class Argument:
    """An argument as the constructor got it. ``passed`` is False for a default of the constructor's own."""

    name: str
    value: Any = None  # a plain JSON value, a dtype or device as text, or the text of its type
    passed: bool = True
    holder: Holder | None = None


@dataclass(frozen=True)
class Setting:
    """A flag of torch's, or an environment variable, that the script set; one for each line that did.

    ``name`` as one writes it: ``"torch.backends.cudnn.benchmark"``, ``"float32_matmul_precision"`` for
    what a function sets, ``"os.environ[OMP_NUM_THREADS]"``. ``value`` is the last one set on that line.
    """

    name: str
    value: Any
    frames: tuple[UserFrame, ...] = ()  # innermost first; empty: set before the script began
    order: int = 0  # of all settings; the largest of a name is the one that counts


@dataclass(frozen=True)
class Executed:
    """Lines of the user's files that ran before the captured steps ended, in the order of their first run.

    ``complete`` is False where lines may be missing (``why`` says the reason): then a line that is not there
    may have run all the same, as may those in ``partial`` (first and last line of code in which a long loop
    was not followed). Lines are those that Python traces: the first of a statement and those of its parts.
    """

    lines: dict[str, tuple[int, ...]] = field(default_factory=dict)
    partial: dict[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    complete: bool = False
    why: str = ""
