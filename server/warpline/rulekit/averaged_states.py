"""Averages of one module's state with another one's, made entry by entry, that the module then loads.

``load_state_dict`` copies each average into the tensor that it was made of. The edit makes all averages in
those tensors with one call, and loads nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.foreach import Loop, has_lists
from warpline.rulekit.foreach_record import ADVICE
from warpline.rulekit.graph import graph_around
from warpline.rulekit.graph.graph import Graph, Node
from warpline.rulekit.graph.storages import VIEWS, storages
from warpline.rulekit.terms import names_in
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, alone, is_method, only_target

#: The operators that make an average of two tensors.
AVERAGE = ("mul", "mul", "add")


@dataclass(frozen=True, slots=True)
class Loaded:
    """``value``: the average of an entry. ``made``: the loop, or the statement with the comprehension, that
    makes them all. ``load``: the statement that loads them."""

    source: Source
    value: cst.BaseExpression
    made: cst.For | cst.SimpleStatementLine
    load: cst.SimpleStatementLine
    comprehension: cst.CompFor | None = None


def loaded(source: Source, line: int) -> Loaded | None:
    """The averages of the loop or comprehension at a line, where the next statement loads them and nothing
    else reads them."""
    for call in source.calls_of("load_state_dict"):
        load = source.statement(call)
        if not is_method(call, "load_state_dict") or not call.args:
            continue
        if not isinstance(load, cst.SimpleStatementLine):
            continue
        given, small = call.args[0].value, alone(load)
        if not isinstance(small, cst.Expr) or small.value is not call:
            continue
        found = _made(source, given, load)
        if found is not None and line in source.extent(found.value):
            return found
    return None


def _made(source: Source, given: cst.BaseExpression, load: cst.SimpleStatementLine) -> Loaded | None:
    if (entries := _entries(source, given)) is not None:
        return Loaded(source, entries[1], load, load, entries[0])
    block = source.block(load)
    before = block[block.index(load) - 1] if block.index(load) else None
    if not isinstance(given, cst.Name) or any(
        source.line(use) > source.line(load) for use in source.uses(given.value, source.scope(load))
    ):
        return None
    assign = alone(before.body.body[-1] if isinstance(before, cst.For) else before)
    target = only_target(assign)
    if not isinstance(assign, cst.Assign) or target is None:
        return None
    if isinstance(before, cst.For):
        into = isinstance(target, cst.Subscript) and source.code(target.value) == given.value
        return Loaded(source, assign.value, before, load) if into else None
    entries = _entries(source, assign.value) if source.code(target) == given.value else None
    if entries is None or not isinstance(before, cst.SimpleStatementLine):
        return None
    return Loaded(source, entries[1], before, load, entries[0])


def _entries(source: Source, node: cst.CSTNode) -> tuple[cst.CompFor, cst.BaseExpression] | None:
    """What a comprehension that makes a mapping runs over, and the value of an entry."""
    if isinstance(node, cst.DictComp):
        return node.for_in, node.value
    if isinstance(node, cst.Call) and source.is_named(node.func, "dict", "OrderedDict") and node.args:
        pairs = node.args[0].value
        if isinstance(pairs, (cst.GeneratorExp, cst.ListComp)) and isinstance(pairs.elt, cst.Tuple):
            return pairs.for_in, pairs.elt.elements[-1].value
    return None


def averaged_in_place(context: Context, found: Loaded) -> Fix:
    """The edit that makes the averages in the module's own tensors. Raises Refused."""
    if not has_lists(context):
        raise Refused("this version of torch has not all operations for lists of tensors")
    return _InPlace(context, found).fix()


class _InPlace(Loop):
    def __init__(self, context: Context, found: Loaded) -> None:
        self.found = found
        if isinstance(found.made, cst.For):
            super().__init__(context, found.source, found.made)
            return
        self.begin(context, found.source)
        head = found.comprehension
        if head is None or head.ifs or head.inner_for_in is not None or head.asynchronous is not None:
            raise Refused(ADVICE)
        self.names |= names_in(head.target)

    def fix(self) -> Fix:
        found, source = self.found, self.source
        side, numbers = _own_side(self.context, found)
        mine, theirs, share = self._average_of(found.value, side)
        edits = Edits(source)
        self.module = edits.add_import("torch", "import torch")
        lists = [self.listed(mine), self.listed(theirs)]
        call = self._call("lerp_", [*lists, self.number(share)], "")
        step = source.module.default_indent
        self.kept = [f"{held}.append({code})" for code, held in self.written.lists.items()]
        if numbers:
            own = source.code(mine)
            self.kept = [
                f"if {own}.is_floating_point():",
                *(step + one for one in self.kept),
                "else:",
                f"{step}{own}.copy_({source.code(found.value)})",
            ]
        if isinstance(found.made, cst.For):
            self.collect(edits, [call])
        else:
            assert found.comprehension is not None
            over = found.comprehension
            head = f"for {source.code(over.target)} in {source.code(over.iter)}:"
            edits.replace_statement(found.made, "\n".join(self.collected([head], step, [call])))
        if found.load is not found.made:
            edits.remove(found.load)
        return edits.fix("Make the averages in the module's own tensors, with one call", "unsafe")

    def _average_of(
        self, value: cst.BaseExpression, side: int
    ) -> tuple[cst.BaseExpression, cst.BaseExpression, cst.BaseExpression]:
        """The module's own tensor, the other one, and that one's share."""
        if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
            sides = [self._weighted(value.left), self._weighted(value.right)]
            kept, new = sides[side], sides[1 - side]
            if (
                kept is not None
                and new is not None
                and self.path(kept[0])
                and self.path(new[0])
                and self._rest(kept[1], new[1])
            ):
                return kept[0], *new
        raise self._other(value)

    def keeping(self) -> list[str]:
        return self.kept

    def outlives(self) -> bool:
        return False  # the mappings hold the same tensors


def _own_side(context: Context, found: Loaded) -> tuple[int, bool]:
    """Which of the two tensors of an average is the module's own, 0 or 1, and whether some are no floating
    numbers. Raises Refused unless the recorded step shows that each average is copied into one of the tensors
    that it was made of, on the same side each time, that nothing else is loaded, and that no average needs
    what another one changes."""
    graph = graph_around(context.profile.facts.dataflow)
    if graph is None:
        raise Refused("the operators of this step were not recorded, so a tensor may be in the state twice")
    refused = Refused("the recorded step does not show that all averages go where they were made of")
    root = storages(graph)
    sides, whole = set[int](), True
    for averages, copies in _rounds(graph, found):
        made = {third.outputs[0]: (one, two) for one, two, third in averages if _adds(one, two, third)}
        copies = [node for node in copies if node.inputs[0] != node.inputs[-1]]  # others stay as they are
        own = [made[node.inputs[-1]] for node in copies if node.inputs[-1] in made]
        if not len(own) == len(made) == len(averages) == len(copies):
            raise refused
        changed = {root(node.inputs[0]) for node in copies}
        read = set[int]()
        for node, pair in zip(copies, own, strict=True):
            given = [one.inputs[0] for one in pair]
            if node.inputs[0] not in given or given[0] == given[1]:
                raise refused
            side = given.index(node.inputs[0])
            sides.add(side)
            read.add(root(given[1 - side]))
            kinds = {graph.dtype(value) for value in (*given, node.inputs[-1])}
            if "float" in graph.dtype(node.inputs[0]) and len(kinds) > 1:
                raise refused
            whole &= "float" in graph.dtype(node.inputs[0])
        if len(changed) < len(copies) or read & changed:
            raise Refused("a tensor is in the state twice, or one of both")
    if len(sides) != 1:
        raise refused
    return sides.pop(), not whole


def _rounds(graph: Graph, found: Loaded) -> Iterator[tuple[list[tuple[Node, ...]], list[Node]]]:
    """The operators of each average and the copies, of each time that a state is loaded. Raises Refused where
    the lines computed anything else."""
    source = found.source
    load = {(source.path, line) for line in source.extent(found.load)}
    lines = {(source.path, line) for line in source.extent(found.value)}
    ran = [one for one in graph.nodes if graph.place(one) in lines | load and one.name not in VIEWS]
    made: list[Node] = []
    for copied, group in groupby(ran, key=lambda one: one.name == "copy"):
        nodes = list(group)
        if copied:
            yield [tuple(made[at : at + 3]) for at in range(0, len(made), 3)], nodes
        elif [one.name for one in nodes] != [*AVERAGE] * (len(nodes) // 3):
            raise Refused(ADVICE)
        made = nodes


def _adds(one: Node, two: Node, third: Node) -> bool:
    """Whether the third operator adds what the others multiplied with numbers."""
    return third.inputs == (*one.outputs, *two.outputs) and len(one.inputs) == len(two.inputs) == 1
