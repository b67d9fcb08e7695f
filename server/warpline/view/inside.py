"""The parts of a line that calls a library: the model's modules and the library's functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from warpline.model.report import Inside, Line
from warpline.view import tokens as tokens_view
from warpline.view.text import printable

#: Beneath a line are at most so many parts, each with at least this share of the step.
MOST = 6
LEAST_SHARE = 0.02
#: The same outside of all modules, where no name of a module says what took the time. Chosen, not fitted.
LEAST_OUTSIDE = 0.005
#: An opened line lists what takes at least this share of the step, as much as a label shows; the rest is one
#: entry. So all lines together list no more than a thousand library lines.
LEAST_LISTED = 0.001

#: Times that differ by no more than this share are the same.
SAME = 1e-6
#: The outermost module, whose path is "".
MODEL = "the model"


@dataclass(frozen=True, slots=True)
class Part:
    """A module and its lines, longest first. Outside of all modules: a named part, or a function."""

    name: str
    place: str  # "modeling_bert.py:348", where its costliest line is
    step_ms: float
    device_ms: float
    lines: tuple[Inside, ...]

    def total(self, field: str) -> float:
        """The sum of a field of the lines, such as ``backward_ms``; 0 for one that they do not have."""
        return float(sum(getattr(line, field, 0.0) for line in self.lines))


@dataclass(frozen=True, slots=True)
class Entry:
    """An opened line lists these: a module, a part outside of all modules, a library's line, or the rest."""

    name: str  # "attention.self" below "bert.encoder.layer.*", "modeling_bert.py:348", "the rest"
    about: str  # the whole path of the module; what the line says; "12 more"
    step_ms: float
    device_ms: float
    at: Inside | None  # the library's line, or the costliest of them; None for the rest
    entries: tuple[Entry, ...] = ()  # longest first, the rest last; they add up to this one


@dataclass(frozen=True, slots=True)
class Caller:
    """A line of the user's, and what of its time a library's line takes. ``part``: the module, or what runs
    outside of all modules; "" where neither is known."""

    part: str
    file: str
    line: int
    step_ms: float


def parts(inside: Iterable[Inside]) -> tuple[Part, ...]:
    """``inside`` added up by module; where there is none by what ran there, else by function; longest
    first."""
    found: dict[tuple[str, str], list[Inside]] = {}
    for entry in inside:
        name = entry.module or entry.part
        key = (name, "") if name else (entry.function, entry.file)
        found.setdefault(key, []).append(entry)
    made = [
        Part(
            printable(name),
            place(lines[0]),
            sum(line.step_ms for line in lines),
            sum(line.device_ms for line in lines),
            tuple(lines),
        )
        for (name, _), lines in found.items()
    ]
    return tuple(sorted(made, key=lambda part: -part.step_ms))


def largest(costs: Iterable[Line], step_ms: float) -> tuple[Part, ...]:
    """The few parts worth a look beneath a line with these costs. What the line takes itself is no part: a
    library calls it, as accelerate calls the user's ``forward``."""
    inside = (each for one in costs for each in one.inside if (each.file, each.line) != (one.file, one.line))
    return tuple(part for part in parts(inside)[:MOST] if part.step_ms >= LEAST_SHARE * step_ms)


def outside(inside: Iterable[Inside], step_ms: float) -> tuple[Part, ...]:
    """The named parts outside of all modules, longest first: the optimizer, copies of the batch."""
    named = parts(entry for entry in inside if entry.part)
    return tuple(part for part in named if part.step_ms >= LEAST_OUTSIDE * step_ms)


def part_name(entry: Inside) -> str:
    """The module that a library's line ran for, else what runs there; "" where neither is known."""
    return entry.part if entry.module is None else entry.module or MODEL


def place(entry: Inside) -> str:
    """File name and line. Paths of installed packages are long, and a name is enough to go by."""
    return f"{printable(entry.file.replace(chr(92), '/').rpartition('/')[2])}:{entry.line}"


def opened(costs: Iterable[Line], step_ms: float, beside: bool = True) -> tuple[Entry, ...]:
    """A line with these costs, opened: modules within modules, the libraries' lines in each, and the rest.
    Together they are its time. Empty where libraries take less of the step than a label shows.

    A line that calls ``generate`` has prefill and decode first. ``beside``: the device works beside the host.
    """
    costs = tuple(costs)
    made = _opened(costs, step_ms)
    generating = [one for one in costs if one.tokens is not None]
    if not made or len(generating) != 1 or len(costs) != 1:
        return made
    return tuple(_by_pass(generating[0], step_ms, beside)) or made


def _by_pass(line: Line, step_ms: float, beside: bool) -> Iterator[Entry]:
    """A line's library lines by passes of ``generate``. Where the capture divides the line otherwise than the
    timed steps do, what is below each kind is stretched to it. Nothing where lines of the user's take part of
    the passes, which have their own."""
    tokens = line.tokens
    if tokens is None:
        return
    times = tokens.prefill.step_ms, tokens.decode.step_ms, tokens.other_ms + tokens.outside_ms
    if abs(sum(times) - line.step_ms) > SAME * line.step_ms:
        return
    kinds = tokens_view.kinds((line,), beside)
    for kind, time, its in zip(kinds, times, _divided(line.inside), strict=True):
        whole = sum(each.step_ms for each in its)
        if whole <= 0:
            continue
        factor = time / whole
        stretched = [
            replace(each, step_ms=each.step_ms * factor, device_ms=each.device_ms * factor) for each in its
        ]
        entries = _opened((replace(line, inside=tuple(stretched)),), step_ms)
        made = _entry(kind.name, kind.about, stretched, stretched[0])
        yield replace(made, entries=entries)


def _divided(inside: Iterable[Inside]) -> tuple[list[Inside], list[Inside], list[Inside]]:
    """The entries in prefill, in decode, and in neither."""
    first, later, neither = [], [], []
    for one in inside:
        first.append(replace(one, step_ms=one.prefill_ms, device_ms=one.prefill_device_ms))
        later.append(replace(one, step_ms=one.decode_ms, device_ms=one.decode_device_ms))
        step_ms = max(0.0, one.step_ms - one.prefill_ms - one.decode_ms)
        device_ms = max(0.0, one.device_ms - one.prefill_device_ms - one.decode_device_ms)
        neither.append(replace(one, step_ms=step_ms, device_ms=device_ms))
    spent = [
        sorted((one for one in each if one.step_ms > 0 or one.device_ms > 0), key=lambda one: -one.step_ms)
        for each in (first, later, neither)
    ]
    return spent[0], spent[1], spent[2]


def _opened(costs: Iterable[Line], step_ms: float) -> tuple[Entry, ...]:
    least, library_ms = LEAST_LISTED * step_ms, 0.0
    model, itself = _Module(MODEL), _Module("the line itself")
    others: dict[tuple[str, str], _Module] = {}
    for one in costs:
        for each in one.inside:
            own = (each.file, each.line) == (one.file, one.line)
            library_ms += 0.0 if own else each.step_ms
            if each.module is not None:
                model.within(each.module).lines.append(each)
            elif each.part or not own:
                key = (each.part, "") if each.part else (each.function, each.file)
                others.setdefault(key, _Module(printable(key[0]))).lines.append(each)
            else:
                itself.lines.append(each)
    if library_ms < least:
        return ()
    found = [*model.opened(least), *(made for each in others.values() for made in each.opened(least))]
    if itself.lines:
        found.append(_entry(itself.name, "", itself.lines, itself.lines[0]))
    return _with_rest(found, least)


@dataclass(slots=True)
class _Module:
    """A module, or a part outside of all modules: its own lines, and the modules in it by name."""

    name: str
    path: str = ""
    lines: list[Inside] = field(default_factory=list)
    modules: dict[str, _Module] = field(default_factory=dict)

    def within(self, path: str) -> _Module:
        """The module that has this path from here."""
        at = self
        for name in path.split(".") if path else ():
            at = at.modules.setdefault(name, _Module(name, f"{at.path}.{name}" if at.path else name))
        return at

    def opened(self, least: float) -> tuple[Entry, ...]:
        """The module as an entry; none if nothing is in it. One without lines that has one other in it is one
        entry with that."""
        at, names = self, [self.name] if self.path else []
        while not at.lines and len(at.modules) == 1:
            (at,) = at.modules.values()
            names.append(at.name)
        by_line: dict[tuple[str, int], list[Inside]] = {}
        for each in at.lines:
            by_line.setdefault((each.file, each.line), []).append(each)
        found = [
            _entry(place(same[0]), printable(same[0].text or same[0].function), same, same[0])
            for same in by_line.values()
        ]
        found += [made for each in at.modules.values() for made in each.opened(least)]
        if not found:
            return ()
        costliest = max((entry.at for entry in found if entry.at), key=lambda line: line.step_ms)
        name = ".".join(names) or self.name
        made = _entry(printable(name), printable(at.path), found, costliest)
        return (replace(made, entries=_with_rest(found, least)),)


def _entry(name: str, about: str, of: Sequence[Inside | Entry], at: Inside | None) -> Entry:
    return Entry(name, about, sum(each.step_ms for each in of), sum(each.device_ms for each in of), at)


def _with_rest(found: Iterable[Entry], least: float) -> tuple[Entry, ...]:
    """Longest first; those below ``least`` as one, if there are several of them beside the longest."""
    longest, *others = sorted(found, key=lambda entry: (-entry.step_ms, entry.name))
    small = [entry for entry in others if entry.step_ms < least]
    if len(small) < 2:
        return (longest, *others)
    kept = others[: len(others) - len(small)]
    return (longest, *kept, _entry("the rest", f"{len(small)} more", small, None))
