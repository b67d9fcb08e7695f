"""A rule's input: the profile and the current sources."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import libcst as cst

from warpline.devices import Capability, can
from warpline.model import costs
from warpline.model.change import Change
from warpline.model.profile import LineCost, Profile
from warpline.model.report import Evidence, Fix, Severity, SourceLine
from warpline.rulekit.draft import Draft
from warpline.rulekit.message import message as fill
from warpline.rulekit.message import ms, percent
from warpline.rulekit.reached import Reached, main_edit, touches
from warpline.syntax.edits import Refused
from warpline.syntax.source import Source, Unreadable, parsed
from warpline.wire.run import Site
from warpline.wire.sites import Autocast, facts_of

_PYTHON = (".py", ".pyw", ".pyi")
_INSTALLED = re.compile(r"[/\\](site|dist)-packages[/\\]")
#: Evidence below both shows nothing: 2 % of the step, or one millisecond when that is less.
MINIMUM_SHARE = 0.02
MINIMUM_MS = 1.0
#: The least gain that is shown (docs/measuring.md): what several such places have may be told together.
_MEASURABLE_SHARE = costs.bound("least-gain") / 100


class Context:
    """One look at a profile by all rules. ``texts(path)`` gives a file as it is now, or None.

    Lines of ``profile`` are lines of those texts (:func:`warpline.diagnosis.rebase.rebase` sees to it).
    """

    def __init__(self, profile: Profile, texts: Callable[[str], str | None]) -> None:
        self.profile = profile
        self.step_ms = profile.steps.step_ms
        self.device = profile.manifest.device
        self.on_gpu = self.can("kernels")
        self.notes: list[str] = []
        self._texts = texts
        self._sources: dict[str, Source] = {}
        self.reached = Reached(profile)
        self._costs = {cost.place: cost for cost in profile.lines}

    def can(self, capability: Capability) -> bool:
        """Whether the device of the run has ``capability``."""
        return can(self.device.kind, capability)

    # -- the profile ----------------------------------------------------------------------------

    def cost(self, file: str, line: int) -> LineCost | None:
        """What a line cost, None when nothing was seen there."""
        return self._costs.get((file, line))

    def costs(self, places: Iterable[tuple[str, int]]) -> list[LineCost]:
        """The costs of ``places``, each once, those without any left out."""
        return [self._costs[place] for place in dict.fromkeys(places) if place in self._costs]

    def costs_within(self, file: str, first: int, last: int) -> list[LineCost]:
        """The costs of lines ``first`` to ``last`` of a file."""
        return [cost for cost in self.profile.lines if cost.file == file and first <= cost.line <= last]

    def costs_of(self, source: Source, node: cst.CSTNode) -> list[LineCost]:
        """The costs of the lines of a node."""
        lines = source.extent(node)
        return self.costs_within(source.path, lines[0], lines[-1])

    @property
    def torch_version(self) -> tuple[int, ...]:
        """``(2, 7)``, of the run."""
        return tuple(int(part) for part in re.findall(r"\d+", self.profile.manifest.torch_version)[:2])

    def sites(self, kind: str) -> list[Site]:
        """Where objects of ``kind`` were made (see :class:`warpline.wire.run.Site`)."""
        return [site for site in self.profile.facts.sites if site.kind == kind]

    def share(self, milliseconds: float) -> float:
        """Percent of the step."""
        return 100 * milliseconds / self.step_ms if self.step_ms else 0.0

    def matters(self, milliseconds: float) -> bool:
        """Whether that much of a step is reported."""
        return milliseconds > 0 and milliseconds >= min(MINIMUM_SHARE * self.step_ms, MINIMUM_MS)

    def adds_up(self, milliseconds: float) -> bool:
        """Whether that much of a step may be reported, if only with what other places have."""
        return self.matters(milliseconds) or milliseconds >= _MEASURABLE_SHARE * self.step_ms > 0

    def idle_ms(self) -> float:
        """Time per step in which the device had nothing to do: what waiting can cost at most."""
        idle = self.profile.totals.get("idle_ms")
        busy = self.profile.steps.device_busy_percent
        return self.step_ms * (1 - busy / 100) if idle is None else float(idle)

    def crowded_ms(self) -> float:
        """Host time per step that other processes took, as far as it is known: the main thread was ready to
        run, or copies waited for torch's threads. 0 on a CPU: there the device's work waits as well."""
        totals = self.profile.totals
        return float(totals.get("stalled_ms", 0.0) + totals.get("queued_ms", 0.0)) if self.on_gpu else 0.0

    @cached_property
    def autocast(self) -> bool:
        """Whether something in the step runs under autocast, other than in float32, which changes nothing. A
        step with compiled code is not surveyed: there it is so where the script made such a context before
        the steps were timed."""
        flags = self.profile.facts.flags
        if flags.autocast is not None:
            return flags.autocast and flags.autocast_dtype != "float32"
        made = (facts_of(Autocast, site) for site in self.sites(Autocast.KIND))
        return any(one.enabled and one.dtype != "float32" for one in made)

    # -- the sources ----------------------------------------------------------------------------

    def text(self, file: str) -> str | None:
        """A file as it is now; None when it is gone or not the user's."""
        return self._texts(file)

    def source(self, file: str) -> Source:
        """A file parsed; without text (and one note for all rules) where it is gone or cannot be parsed."""
        if file not in self._sources:
            self._sources[file] = Source(file, "")
            text = self._texts(file)
            if text is not None and file.endswith(_PYTHON):
                try:
                    self._sources[file] = parsed(file, text)
                except Unreadable as reason:
                    self.note(f"{file}: no fix is offered, because {reason}")
        return self._sources[file]

    @cached_property
    def each_step(self) -> list[tuple[LineCost, Source, cst.SimpleStatementLine]]:
        """The simple statements that each step runs, in the order of the text, with their cost."""
        lines = sorted(
            (cost for cost in self.profile.lines if cost.calls >= 0.5), key=lambda cost: cost.place
        )
        found = ((cost, source := self.source(cost.file), source.statement_at(cost.line)) for cost in lines)
        return [
            (cost, source, statement)
            for cost, source, statement in found
            if isinstance(statement, cst.SimpleStatementLine)
        ]

    def sources(self) -> Iterator[Source]:
        """The user's files of the profile, parsed. Those of installed packages, which loader workers run, are
        left out: they are large, and no edit is made there."""
        yield from (self.source(file) for file in self.profile.sources if not _INSTALLED.search(file))

    def calls(self, *names: str) -> Iterator[tuple[Source, cst.Call]]:
        """Calls in these files, of functions with one of ``names`` (see :meth:`Source.is_named`)."""
        for source in self.sources():
            for call in source.calls_of(*names) if names else source.nodes(cst.Call):
                yield source, call

    def classes(self, name: str = "") -> Iterator[tuple[Source, cst.ClassDef]]:
        """The classes of these files, those of a name where one is given."""
        for source in self.sources():
            for owner in source.nodes(cst.ClassDef):
                if not name or owner.name.value == name:
                    yield source, owner

    def note(self, text: str) -> None:
        """Say once why something could not be judged."""
        if text not in self.notes:
            self.notes.append(text)

    def spent(self, metric: str, milliseconds: float) -> dict[str, Evidence]:
        """The evidence ``spent``, a time per step, and its ``share`` of the step."""
        return {"spent": ms(metric, milliseconds), "share": percent(metric, self.share(milliseconds))}

    # -- what is found --------------------------------------------------------------------------

    def draft(
        self,
        site: tuple[str, int],
        message: str,
        evidence: Mapping[str, Evidence],
        *,
        cost_ms: float | None,
        cause: tuple[str, int] | None = None,
        saving_ms: float | None = None,
        change: Change | None = None,
        fixes: Sequence[Callable[[], Fix] | Fix | str] = (),
        severity: Severity | None = None,
        alternative: Change | None = None,
        unseen: bool = False,
        replayed: bool = False,
        tried: bool = False,
        least: float = 0.0,
        once: str = "",
        hides: tuple[str, Change] | None = None,
        proven: bool = False,
    ) -> Draft:
        """A finding: ``site`` is the line to edit, ``cause`` another line where the time is seen.

        ``message`` is a template over ``evidence`` (``"waits {wait}"``). ``cost_ms`` is the measured time per
        step that it is about: below the threshold the finding is dropped (None: it is about memory, and the
        rule has a threshold of its own). ``saving_ms`` (at most ``cost_ms``, its default) is the bound of
        what the change saves. ``fixes``: each a Fix, a function that gives one or raises Refused, or a text
        that says what to do by hand; a Fix that would not take effect is refused, too. When all refuse, the
        first reason ends the message. ``alternative``: what the last of them changes, used instead if the
        first one refuses or its change gains nothing. ``unseen``: ``cost_ms`` is an upper end that a replay
        cannot lower, ``replayed``: one that only a replay confirms, ``tried``: a gain that only a trial does,
        ``least``: percent that it has to gain, ``once``: what is paid only once, ``hides``: what hides
        others, and the step without it, ``proven``: fixes that need a trial (see :class:`Draft`).
        """
        made, reasons, first = [], [], False
        for which, make in enumerate(fixes):
            if isinstance(make, str):
                reasons.append(make)
                continue
            try:
                fix = make if isinstance(make, Fix) else make()
                unreached = self.reached.refusal(fix, self.source)
                if unreached is None:
                    made.append(fix)
                    first |= which == 0
                else:
                    reasons.append(unreached)
            except Refused as reason:
                reasons.append(str(reason))
        text = fill(message, evidence)
        if reasons and not made:
            text += f" No edit is offered: {reasons[0]}."
        elif made and not touches(made[0], site, self.source):
            edit = main_edit(made[0])
            evidence = {**evidence, "edit": Evidence("line of the edit", edit.start[0], "line")}
            text += f" The edit is at {Path(edit.file).name}:" + fill("{edit}.", evidence)
        if made and alternative is not None and not first:
            change = alternative
        most = cost_ms or 0.0
        saving = most if saving_ms is None else min(saving_ms, most)
        return Draft(
            *site,
            SourceLine(*(cause or site)),
            text,
            tuple(evidence.values()),
            cost_ms,
            saving,
            change,
            tuple(made),
            severity,
            unseen,
            replayed,
            tried,
            proven,
            least,
            alternative if len(made) > 1 else None,
            once,
            hides,
        )
