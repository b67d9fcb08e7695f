"""The annotated code of a rule's page, as text and as a profile that the rule can look at.

**Annotations** are comments ``#> clause; clause; …`` at the end of a line (about that line) or on a
line of their own (``#^ …``: about the line above; ``#> …``: about the run); they are no part of the
text. A clause is a verb and ``key=value`` words, values being literals without blanks (quote them
otherwise), ``true``/``false`` or plain text:

- ``found``: the rule finds something here (and nowhere else)
- ``cost step_ms= device_ms= backward_ms= idle_ms= cpu_ms= sync_ms= loader_ms= calls= launches= …``: fields
  of LineCost; ``step_ms`` defaults to the larger of ``cpu_ms`` and ``device_ms``
- ``op aten::mm count= device_ms= cpu_ms= phase= shapes=[[8,4],[4,4]] dtypes=float,float outer=false``
- ``late more_ms=``: the late rank spends so much more on this line
- ``inside file=/lib/trainer.py line=12 step_ms= sync_ms= text=`` (a line of a library below this one)
- ``kernel NAME count= device_ms= phase= grid=(1,1,1) block=(128,1,1) kind=copy tensor_cores=false``
- ``site loader num_workers=0 …`` (kinds and keys: warpline.wire.run.Site); ``use loader``: the sites of
  that kind are used on this line (``site loader as=valid …`` and ``use valid`` name one of several);
  ``with.lr=0.1`` is an argument that it was made with; ``also wait_ms=3 …``: more of the site before
- ``event graph_break reason="…"`` (CompileEvent)
- ``padding rows=32 columns=512 padded=9000 shared=100``: what the embedding on this line looked up
- ``node aten.mul.Tensor args=[%0,2] shape=[8,4] dtype=float32 function=f via=library of=x*2``: an operator of
  the recorded step, called by the part ``of`` this line; ``%0`` being the result of the first one; a number
  that no operator has is a tensor from before the step
- ``tensor %9 shape=[8,4] dtype=int64 parameter=true unheld=true buffer=true remade=true leaf=true
  unscored=3 next=%2``: such a tensor; of its entries so many count for nothing in a loss; the next step reads
  ``%2`` in its place
- ``pass roots=[%1] read=[%9] cleared=[%8] left=[] inputs=[] retained=false``: a backward pass begins here; it
  gives gradients to these parameters (see ``wire.dataflow.Backward``)
- ``around function=main``: the call on this line runs all that the step records; it is itself run by the
  call that is so marked above it
- ``skipped``: the line has not run so far; all others have
- for the run: ``device …`` (DeviceFacts; an H200 unless said), ``steps step_ms= device_busy_percent=``
  (``step_ms`` defaults to the lines' sum, ``profiled_step_ms`` to ``step_ms``), ``flags …``, ``memory …``,
  ``peaks …``, ``totals …``, ``manifest …``, ``gc ms=5``, ``workers batch_ms=100`` (of loaders)
"""

from __future__ import annotations

import ast
import math
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from warpline.model.profile import Kernel, LineCost, Op, Profile
from warpline.model.ranks import LateLine
from warpline.model.report import Attributed, Inside, Steps, Unattributed
from warpline.rulekit.page import without_annotations
from warpline.wire.births import Argument, Executed
from warpline.wire.dataflow import TENSOR, Backward, Dataflow, Frame, OperatorSite, Padding, Unscored
from warpline.wire.facts import Flags, MeasuredPeaks, Memory
from warpline.wire.run import CompileEvent, DeviceFacts, Facts, Manifest, Request, Site
from warpline.wire.workers import Workers

FILE = "/example/train.py"

_H200: dict[str, Any] = {
    "kind": "cuda",
    "name": "NVIDIA H200",
    "capability": (9, 0),
    "multiprocessors": 132,
    "memory_bytes": 150_754_820_096,
    "bf16": True,
}
_Pass = tuple[tuple[str, int], int, dict[str, Any]]  # place, operators before it, what it says
#: Begins the keys of what a site was made with.
_ARGUMENT = "with."
_MARK = re.compile(r"(.*?)(?:(#[>^]) (.*))?$")


@dataclass(frozen=True, slots=True)
class Example:
    text: str
    profile: Profile
    found: tuple[int, ...]  # lines at which the rule must find something, and nowhere else


@dataclass(frozen=True, slots=True)
class Project:
    """Several annotated files as one run. ``found``: ``(file, line, rule)``, rule "" when not said."""

    texts: dict[str, str]
    profile: Profile
    found: tuple[tuple[str, int, str], ...]


@dataclass
class _Reader:
    file: str = FILE
    costs: dict[tuple[str, int], LineCost] = field(default_factory=dict)
    sites: list[tuple[str, Site]] = field(default_factory=list)  # with the word that its uses go by
    uses: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    events: list[CompileEvent] = field(default_factory=list)
    found: list[tuple[str, int, str]] = field(default_factory=list)
    device: dict[str, Any] = field(default_factory=dict)
    steps: dict[str, Any] = field(default_factory=dict)
    flags: dict[str, Any] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)
    peaks: dict[str, Any] = field(default_factory=dict)
    totals: dict[str, Any] = field(default_factory=dict)
    workers: dict[str, Any] = field(default_factory=dict)
    manifest: dict[str, Any] = field(default_factory=dict)
    late_line: LateLine | None = None
    gc_ns: list[tuple[int, int]] = field(default_factory=list)
    padding: list[tuple[OperatorSite, Padding]] = field(default_factory=list)
    nodes: list[tuple[OperatorSite, str, dict[str, Any]]] = field(default_factory=list)
    tensors: dict[int, dict[str, Any]] = field(default_factory=dict)  # those from before the step
    passes: list[_Pass] = field(default_factory=list)
    around: list[Frame] = field(default_factory=list)
    skipped: list[tuple[str, int]] = field(default_factory=list)

    def read(self, file: str, code: str) -> None:
        """All annotations of one file. Lines of annotations alone belong to no line of the text."""
        self.file, line = file, 0
        for raw in code.split("\n"):
            before, mark, annotation = _MARK.match(raw).groups()  # type: ignore[union-attr]  # matches all
            line += bool(before.strip() or not mark)
            for clause in (annotation or "").split(";"):
                words = shlex.split(clause)
                if words:
                    self.clause(line, words[0], words[1:])

    def clause(self, line: int, verb: str, words: list[str]) -> None:
        """One clause of an annotation on ``line``. Raises ValueError for one that is unknown."""
        plain = [word for word in words if "=" not in word]
        values = {
            key: _value(text) for key, _, text in (word.partition("=") for word in words if "=" in word)
        }
        place = (self.file, line)
        cost = self.costs.get(place, LineCost(*place, "<module>"))
        if verb in ("device", "steps", "flags", "memory", "peaks", "totals", "manifest", "workers"):
            getattr(self, verb).update(values)
        elif verb == "found":
            self.found += [(*place, rule) for rule in plain or [""]]
        elif verb == "cost":
            self.costs[place] = replace(cost, **values)
        elif verb == "late":
            self.late_line = LateLine(*place, **values)
        elif verb == "op":
            self.costs[place] = replace(cost, ops=(*cost.ops, _op(plain[0], values)))
        elif verb == "inside":
            entry: dict[str, Any] = {"module": None, "function": "", "step_ms": 0.0} | values
            entry = {"device_ms": 0.0, "calls": 1.0} | entry
            self.costs[place] = replace(cost, inside=(*cost.inside, Inside(**entry)))
        elif verb == "kernel":
            known: dict[str, Any] = {"phase": "forward", "count": 1.0, "device_ms": 0.0} | values
            self.costs[place] = replace(cost, kernels=(*cost.kernels, Kernel(plain[0], **known)))
        elif verb == "also":
            self.sites[-1][1].facts.update(values)
        elif verb == "site":
            word = str(values.pop("as", plain[0]))
            given = {key: values.pop(key) for key in list(values) if key.startswith(_ARGUMENT)}
            arguments = tuple(Argument(key[len(_ARGUMENT) :], value) for key, value in given.items())
            self.sites.append((word, Site(plain[0], *place, "<module>", values, arguments=arguments)))
        elif verb == "use":
            self.uses.setdefault(plain[0], []).append(place)
        elif verb == "event":
            event: dict[str, Any] = {"reason": ""} | values
            self.events.append(CompileEvent(plain[0], *place, **event))
        elif verb == "gc":
            each = int(float(values["ms"]) * 1e6 / 5)  # one in each captured step
            self.gc_ns += [(at * each, (at + 1) * each) for at in range(5)]
        elif not self.recorded(place, verb, plain, values):
            raise ValueError(f"unknown annotation `{verb}`")

    def recorded(self, place: tuple[str, int], verb: str, plain: list[str], values: dict[str, Any]) -> bool:
        """Whether it is a clause about what ran: the operators of the recorded step, or the lines."""
        if verb == "padding":
            site = OperatorSite(*place, "<module>")
            self.padding.append((site, Padding(value=len(self.padding), site=len(self.padding), **values)))
        elif verb == "tensor":
            self.tensors[int(plain[0].removeprefix("%"))] = values
        elif verb == "node":
            function, via = (
                str(values.pop(key, own)) for key, own in (("function", "<module>"), ("via", ""))
            )
            self.nodes.append((OperatorSite(*place, function, via), plain[0], values))
        elif verb == "pass":
            self.passes.append((place, len(self.nodes), values))
        elif verb == "around":
            self.around.append(Frame(*place, str(values.get("function", "<module>"))))
        elif verb == "skipped":
            self.skipped.append(place)
        else:
            return False
        return True


def read_example(code: str) -> Example:
    """Read the annotated ``code`` of one file."""
    project = read_project({FILE: code})
    return Example(project.texts[FILE], project.profile, tuple(line for _, line, _ in project.found))


def read_project(files: dict[str, str]) -> Project:
    """Read several annotated files, ``{path: code}``; the first is the script."""
    reader = _Reader()
    for path, code in files.items():
        reader.read(path, code)
    texts = {path: without_annotations(code) for path, code in files.items()}
    return Project(texts, _profile(texts, reader), tuple(reader.found))


def _profile(texts: dict[str, str], reader: _Reader) -> Profile:
    script = next(iter(texts))
    lines = [
        replace(
            cost,
            step_ms=cost.step_ms or max(cost.cpu_ms, cost.device_ms),
            total_nodes=cost.total_nodes or cost.nodes,
            total_unused_nodes=cost.total_unused_nodes or cost.unused_nodes,
            total_backward_ms=cost.total_backward_ms or cost.backward_ms,
        )
        for cost in reader.costs.values()
    ]
    lines.sort(key=lambda cost: (-cost.step_ms, cost.file, cost.line))
    step_ms = float(reader.steps.get("step_ms") or sum(cost.step_ms for cost in lines))
    profiled_ms = float(reader.steps.get("profiled_step_ms") or step_ms)
    busy = float(reader.steps.get("device_busy_percent", 0.0))
    manifest = Manifest(
        format=1,
        created_ns=0,
        script=script,
        argv=(),
        python_version="3.12.3",
        torch_version="2.11.0",
        device=DeviceFacts(**(_H200 | reader.device)),
        request=Request(target=script),
        step_source="optimizer",
        timed_ns=(),
        captured=((0, 1),) * 5,
        line_events="monitoring",
        roots=(script.rpartition("/")[0],),
    )
    facts = Facts(
        sites=tuple(replace(site, uses=tuple(reader.uses.get(word, ()))) for word, site in reader.sites),
        flags=Flags(**({"cpu_count": 16} | reader.flags)),
        gc_ns=tuple(reader.gc_ns),
        dataflow=_called(_computed(reader.nodes, reader.tensors, reader.passes, texts), reader.around)
        if reader.nodes
        else _looked_up(reader.padding),
        compile_events=tuple(reader.events),
        executed=_executed(texts, reader.skipped) if reader.skipped else Executed(),
        memory=Memory(**reader.memory),
        peaks=MeasuredPeaks(**reader.peaks),
        workers=replace(Workers(2, 0.0, ()), **reader.workers) if reader.workers else None,
    )
    return Profile(
        manifest=replace(manifest, **reader.manifest),
        facts=facts,
        steps=Steps(5, step_ms, profiled_ms, profiled_ms / step_ms if step_ms else 1.0, busy),
        lines=tuple(lines),
        unattributed=Unattributed(0.0, max(0.0, step_ms - sum(cost.step_ms for cost in lines))),
        attributed=Attributed(100.0, 100.0),
        sources=texts,
        totals=reader.totals,
        late_line=reader.late_line,
    )


def _looked_up(padding: list[tuple[OperatorSite, Padding]]) -> Dataflow:
    """A record of nothing but look-ups in embeddings."""
    if not padding:
        return Dataflow()
    many = range(len(padding))
    return Dataflow(
        missing="",
        names=("aten.embedding.default",),
        sites=tuple(site for site, _ in padding),
        shapes=tuple((one.rows, one.columns) for _, one in padding),
        dtypes=("int64",),
        name=tuple(0 for _ in many),
        site=tuple(many),
        arguments=tuple((None, f"{TENSOR}{one.value}") for _, one in padding),
        outputs=tuple(() for _ in many),
        shape=tuple(many),
        dtype=tuple(0 for _ in many),
        padding=tuple(one for _, one in padding),
    )


def _computed(
    nodes: list[tuple[OperatorSite, str, dict[str, Any]]],
    tensors: dict[int, dict[str, Any]],
    passes: list[_Pass],
    texts: dict[str, str],
) -> Dataflow:
    """The record of a step of ``nodes``, each with one result, in the order of the text.

    ``args``: its arguments, with ``%0`` for the result of the first node and so on (a number of no node:
    a tensor that the step did not make, described by ``tensors``); ``shape`` and ``dtype``: the result's.
    """
    given = [_arguments(values.get("args", ())) for _, _, values in nodes]
    before = range(len(nodes), 1 + max(*tensors, *map(int, _VALUE.findall(str(given))), 0, 0))
    shapes = [tuple(values.get("shape", ())) for _, _, values in nodes]
    shapes += [tuple(tensors.get(index, {}).get("shape", ())) for index in before]
    dtypes = [str(values.get("dtype", "float32")) for _, _, values in nodes]
    dtypes += [str(tensors.get(index, {}).get("dtype", "float32")) for index in before]
    many = range(len(nodes))
    return Dataflow(
        missing="",
        names=tuple(name for _, name, _ in nodes),
        sites=tuple(site for site, _, _ in nodes),
        shapes=tuple(shapes),
        dtypes=tuple(dtypes),
        name=tuple(many),
        site=tuple(many),
        arguments=tuple(given),
        outputs=tuple((index,) for index in many),
        shape=tuple(range(len(shapes))),
        dtype=tuple(range(len(dtypes))),
        parameters=tuple(index for index in tensors if tensors[index].get("parameter")),
        unheld=tuple(index for index in tensors if tensors[index].get("unheld")),
        buffers=tuple(index for index in tensors if tensors[index].get("buffer")),
        remade=tuple(index for index in tensors if tensors[index].get("remade")),
        followed=tuple(
            (index, int(given["next"].removeprefix("%")))
            for index, given in tensors.items()
            if "next" in given
        ),
        leaves=tuple(index for index in tensors if tensors[index].get("leaf")),
        frames=(
            *(
                Frame(site.file, site.line, site.function, _span(texts, site, str(values.get("of", ""))))
                for site, _, values in nodes
            ),
            *(Frame(*place, "<module>") for place, _, _ in passes),
        ),
        stacks=tuple((-1, index) for index in range(len(nodes) + len(passes))),
        stack=tuple(many),
        passes=tuple(
            Backward(before, len(nodes) + index, **_numbers(values))
            for index, (_, before, values) in enumerate(passes)
        ),
        unscored=tuple(
            Unscored(index, math.prod(given["shape"]), given["unscored"])
            for index, given in tensors.items()
            if "unscored" in given
        ),
    )


def _called(flow: Dataflow, around: list[Frame]) -> Dataflow:
    """``flow`` with the calls ``around`` all of its code, the outermost first."""
    frames, stacks = len(flow.frames), len(flow.stacks)
    calls = tuple((stacks + at - 1 if at else -1, frames + at) for at in range(len(around)))
    inner = stacks + len(around) - 1 if around else -1
    return replace(
        flow,
        frames=(*flow.frames, *around),
        stacks=(*((inner, frame) for _, frame in flow.stacks), *calls),
    )


def _span(texts: dict[str, str], site: OperatorSite, part: str) -> tuple[int, ...]:
    start = texts[site.file].splitlines()[site.line - 1].index(part)
    return (site.line, start, start + len(part)) if part else ()


_VALUE = re.compile(r"%(\d+)")


def _executed(texts: dict[str, str], skipped: list[tuple[str, int]]) -> Executed:
    numbers = {path: range(1, 1 + len(text.splitlines())) for path, text in texts.items()}
    return Executed(
        complete=True,
        lines={
            path: tuple(one for one in lines if (path, one) not in skipped) for path, lines in numbers.items()
        },
    )


def _numbers(values: dict[str, Any]) -> dict[str, Any]:
    """The words of a ``pass``, lists of values as their numbers."""
    return {
        key: tuple(map(int, _VALUE.findall(value))) if isinstance(value, str) else value
        for key, value in values.items()
    }


def _arguments(written: Any) -> Any:
    return ast.literal_eval(_VALUE.sub(r'"\g<0>"', written)) if isinstance(written, str) else written


def _op(name: str, values: dict[str, Any]) -> Op:
    known: dict[str, Any] = {"phase": "forward", "count": 1.0, "device_ms": 0.0, "cpu_ms": 0.0} | values
    if isinstance(known.get("dtypes"), str):
        known["dtypes"] = tuple(known["dtypes"].split(","))
    return Op(name, **known)


def _value(text: str) -> Any:
    """A literal with lists as tuples; what is not a literal is a string; ``true`` and ``false`` too."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return _tuples(ast.literal_eval(text))
    except (ValueError, SyntaxError):
        return text


def _tuples(value: Any) -> Any:
    return tuple(_tuples(part) for part in value) if isinstance(value, (list, tuple)) else value


def texts(example: Example) -> Callable[[str], str | None]:
    """The example's file, for :class:`warpline.rulekit.Context`."""
    return lambda path: example.text if path == FILE else None
