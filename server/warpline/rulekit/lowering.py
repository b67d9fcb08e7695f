"""Autocast around some statements: what would have 16 bits there, and whether an operator would raise."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property

import libcst as cst

from warpline.model.profile import LineCost, Op
from warpline.rulekit.calling import below
from warpline.rulekit.context import Context
from warpline.rulekit.graph import whole_graph
from warpline.rulekit.graph.graph import Graph, Node
from warpline.rulekit.graph.lowered import (
    ALIKE,
    IN_FLOAT32,
    MIXED,
    OWN,
    PRODUCTS,
    REFUSED,
    SPARSE,
    TOO_NARROW,
    WIDE_CALLS,
    Lowered,
    Situation,
    is_wide,
)
from warpline.rulekit.graph.storages import VIEWS
from warpline.rulekit.terms import descend, names_in
from warpline.rulekit.triton import is_own
from warpline.syntax.edits import Refused
from warpline.syntax.source import Source, Statement, is_method, methods
from warpline.text.lines import lines_of
from warpline.wire.dataflow import OPTIMIZER

_SPARSE_KERNEL = "cusparse::"
#: A line that casts by itself: where the type is that already, torch runs no operator for it.
_CASTS = re.compile(
    r"\.(?:float|double|type_as|type)\(|\.to\([^()]*(?:dtype|float)|dtype=torch\.float(?:32|64)"
)
_ASKS = re.compile(r"\.dtype\b|\.type_as\(")
#: Methods after which a tensor has a type that NumPy knows.
_TO_NUMPY = frozenset({
    "float", "double", "int", "long", "bool", "to", "type", "argmax", "argmin", "argsort", "item", "tolist",
})  # fmt: skip
_LONGEST = 60


class Lowering:
    """``statements``: neighbours in a block of ``source``; ``half``: the type that they would run in."""

    def __init__(self, context: Context, source: Source, statements: list[Statement], half: str) -> None:
        self._context, self._source, self._statements, self._half = context, source, statements, half

    @cached_property
    def costs(self) -> list[LineCost]:
        """The lines of the statements, and all lines that they call."""
        found: dict[tuple[str, int], LineCost] = {}
        for statement in self._statements:
            for cost in self._context.costs_of(self._source, statement):
                found |= {one.place: one for one in below(self._context, cost)}
        return list(found.values())

    @cached_property
    def places(self) -> frozenset[tuple[str, int]]:
        """The same lines, and all lines of the statements."""
        own = {(self._source.path, line) for one in self._statements for line in self._source.extent(one)}
        return frozenset(own | {cost.place for cost in self.costs})

    @cached_property
    def graph(self) -> Graph | None:
        """The recorded step; None where a part of it is missing."""
        return whole_graph(self._context.profile.facts.dataflow)

    @cached_property
    def inside(self) -> frozenset[int]:
        """The operators of the record that the statements run, by index."""
        found, here = set[int](), False
        for node in self.graph.nodes if self.graph is not None else ():
            place = self.graph.place(node) if self.graph is not None else None
            here = place in self.places if place is not None else here
            if here:
                found.add(node.index)
        return frozenset(found)

    @cached_property
    def lowered(self) -> Lowered | None:
        """The recorded step with autocast; None where a part of it is missing."""
        if self.graph is None:
            return None
        return Lowered(self.graph, self._situation, self._calls, half=self._half)

    @cached_property
    def bytes_left(self) -> dict[tuple[str, int], float]:
        """The share of the bytes that each line's kernels between products would move, where that is less
        than one. What reads a product's result is not only there: its gradient comes back to its line."""
        graph, lowered = self.graph, self.lowered
        if graph is None or lowered is None:
            return {}
        now: dict[tuple[str, int], int] = defaultdict(int)
        then: dict[tuple[str, int], int] = defaultdict(int)
        for node in graph.nodes:
            place, name = graph.place(node), graph.called(node)
            if place is None or node.index not in self.inside or name in VIEWS | IN_FLOAT32:
                continue
            product = name in PRODUCTS or "scaled_dot_product" in name
            for value in (*(() if product else node.inputs), *node.outputs):
                if graph.dtype(value) == "float32":
                    now[place] += 2 * graph.size(value)
                    then[place] += graph.size(value) * (1 if value in lowered.short else 2)
        return {place: then[place] / bytes_ for place, bytes_ in now.items() if then[place] < bytes_}

    def check(self) -> None:
        """Do nothing where all would run under autocast. Raises Refused where something would not."""
        for found in (self._operator, self._own_function, self._own_kernel, self._given_to_numpy):
            if reason := found():
                raise Refused(reason)

    # -- operators ------------------------------------------------------------------------------

    def _situation(self, node: Node) -> Situation:
        code = self._code(self.graph.place(node) if self.graph is not None else None)
        return Situation(node.index in self.inside, bool(_CASTS.search(code)), bool(_ASKS.search(code)))

    def _code(self, place: tuple[str, int] | None) -> str:
        if place is None:
            return ""
        source = self._context.source(place[0])
        if not 0 < place[1] <= len(source.lines):
            return ""
        statement = source.statement_at(place[1])
        simple = isinstance(statement, cst.SimpleStatementLine)
        return source.code(statement) if statement is not None and simple else source.lines[place[1] - 1]

    def _calls(self, node: Node) -> frozenset[str]:
        place = self.graph.place(node) if self.graph is not None else None
        return self._called_at.get(place, frozenset()) if place is not None else frozenset()

    @cached_property
    def _called_at(self) -> dict[tuple[str, int], frozenset[str]]:
        """The operators of each line, by its place."""
        return {cost.place: _called(cost.ops) for cost in self._context.profile.lines}

    def _operator(self) -> str:
        if self.lowered is None:
            return self._unrecorded()
        if not self.lowered.failures:
            return ""
        first = self.lowered.failures[0]
        assert self.graph is not None
        return self._reason(first.why, first.operator, self._code(self.graph.place(first.node)))

    def _unrecorded(self) -> str:
        """The same by what the trace has of the lines, without what their inputs would be."""
        for cost in self.costs:
            code = self._code(cost.place)
            names = _called(op for op in cost.ops if op.phase == "forward" and "float" in op.dtypes[:2])
            if "binary_cross_entropy" in names:
                return self._reason(REFUSED, "binary_cross_entropy", code)
            if any(_SPARSE_KERNEL in kernel.name for kernel in cost.kernels):
                return self._reason(SPARSE, "", code)
            if _CASTS.search(code):
                continue
            for name in sorted(names):
                if is_wide(name) or name in WIDE_CALLS:
                    return self._reason(TOO_NARROW, name, code)
                if name.rstrip("_") in ALIKE and name not in ALIKE:  # in place
                    return self._reason(MIXED, name, code)
        return ""

    def _reason(self, why: str, operator: str, code: str) -> str:
        line = lines_of(code.strip())[0][:_LONGEST] if code.strip() else operator
        return {
            TOO_NARROW: f"`{operator.lstrip('_')}` does not take {self._half} (`{line}`)",
            MIXED: f"`{line}` would get float32 and {self._half} at once",
            SPARSE: f"a product with a sparse matrix may not run in {self._half} (`{line}`)",
            REFUSED: f"torch refuses `{operator}` under autocast: `{operator}_with_logits` takes the logits",
            OWN: f"it is unknown whether `{operator}` takes {self._half}",
        }[why]

    # -- what the user wrote below torch's operators --------------------------------------------

    def _own_function(self) -> str:
        """An autograd function that multiplies. Its backward pass runs outside of autocast, with what its
        forward pass has saved: 16 bits and float32, unless it says ``custom_fwd``."""
        for owner, source, forward in self._functions():
            if source.decorated(forward, "custom_fwd"):
                continue
            own = self._context.costs_of(source, owner)
            names = _called(op for cost in own for op in cost.ops)
            if names & PRODUCTS or {name.rstrip("_") for name in names} & ALIKE:
                return (
                    f"`{owner.name.value}` has a backward pass of its own, which needs `custom_fwd` and "
                    "`custom_bwd` of `torch.amp` under autocast"
                )
        return ""

    def _functions(self) -> Iterator[tuple[cst.ClassDef, Source, cst.FunctionDef]]:
        """The script's own autograd functions that the statements call, with their ``forward``."""
        for source, owner in self._context.classes():
            own = any(source.is_named(base.value, "Function") for base in owner.bases)
            forward = methods(owner).get("forward") if own else None
            if forward and any((source.path, at) in self.places for at in source.extent(forward)):
                yield owner, source, forward

    def _own_kernel(self) -> str:
        for cost in self.costs:
            for kernel in cost.kernels:
                if is_own(self._context, kernel):
                    return f"it is unknown whether the script's own kernels take {self._half}"
        return ""

    # -- afterwards -----------------------------------------------------------------------------

    def _given_to_numpy(self) -> str:
        """NumPy has no bfloat16: ``.numpy()`` of what would be left in it raises."""
        if self._half != "bfloat16" or not self._statements:
            return ""
        source, first = self._source, self._source.line(self._statements[0])
        for call in source.nodes(cst.Call, within=source.scope(self._statements[0])):
            if not is_method(call, "numpy") or source.line(call) < first:
                continue
            root, methods = _chain(call)
            if not methods & _TO_NUMPY and self._would_be_short(root, source.line(call)):
                return f"`{source.code(call)[:_LONGEST]}` does not take {self._half} without `.float()`"
        return ""

    def _would_be_short(self, root: str, line: int) -> bool:
        graph, lowered = self.graph, self.lowered
        if graph is None or lowered is None:
            return False
        here = [node for node in graph.nodes if graph.place(node) == (self._source.path, line)]
        if here:
            return any(value in lowered.short for value in here[-1].outputs)
        for statement in self._statements:  # it does not run in each step
            if any(root in names_in(one) for one in descend(statement, cst.AssignTarget)):
                own = Lowering(self._context, self._source, [statement], self._half).inside
                return bool(lowered.leaving(own, unread=True))
        return False


class LoweringEverywhere(Lowering):
    """The same of the whole step, which a framework puts under autocast."""

    def __init__(self, context: Context, half: str) -> None:
        super().__init__(context, context.source(context.profile.manifest.script), [], half)

    @cached_property
    def costs(self) -> list[LineCost]:
        """All lines."""
        return list(self._context.profile.lines)

    @cached_property
    def inside(self) -> frozenset[int]:
        """All operators but the optimizer's."""
        if self.graph is None:
            return frozenset()
        sites = ((node.index, self.graph.site(node)) for node in self.graph.nodes)
        return frozenset(index for index, site in sites if site is None or site.via != OPTIMIZER)


def _called(ops: Iterable[Op]) -> frozenset[str]:
    return frozenset(op.name[6:] for op in ops if op.name.startswith("aten::"))


def _chain(call: cst.Call) -> tuple[str, frozenset[str]]:
    """``("x", {"detach", "cpu"})`` of ``x[0].detach().cpu().numpy()``."""
    methods = set[str]()
    node: cst.CSTNode = call.func
    while isinstance(node, (cst.Attribute, cst.Call, cst.Subscript)):
        if isinstance(node, cst.Attribute):
            methods.add(node.attr.value)
            node = node.value
        else:
            node = node.func if isinstance(node, cst.Call) else node.value
    return (node.value if isinstance(node, cst.Name) else ""), frozenset(methods)
