"""Float64 as torch's default type: the call that sets it, and what else has to become float32."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.double_settings import DoubleSetting, followed, given_elsewhere
from warpline.rulekit.doubles import arrays_beside, asked_for, in_float32, unclear
from warpline.rulekit.graph import Graph, whole_graph
from warpline.rulekit.graph.extents import before_step
from warpline.rulekit.origins import Origin
from warpline.rulekit.settings import said
from warpline.syntax.edits import Refused
from warpline.syntax.source import Source
from warpline.wire.run import Site
from warpline.wire.sites import Loader, facts_of

_DOUBLE = {"default_dtype": "torch.float64", "default_tensor_type": "torch.DoubleTensor"}
_SETTERS = ("torch.set_default_dtype", "torch.set_default_tensor_type")


def default_setting(context: Context) -> DoubleSetting | None:
    """Where the script says that float64 is torch's default type: what its call is given, or the call itself
    where another value may be given. None where the run recorded no such call as the last one."""
    found = said(context, _DOUBLE)
    if found is None:
        return None
    source = context.source(found.place[0])
    call = source.call(found.place[1], *_SETTERS)
    if call is None or not call.args:
        return None
    words = f"`{source.code(call.func)}`"
    written = followed(context, source, call.args[0].value)
    if written is None or given_elsewhere(context, written):
        return DoubleSetting(Origin("unknown", source, call, words), ())
    return DoubleSetting(replace(written, words=words) if written.kind == "literal" else written, ())


def default_in_float32(context: Context, setting: DoubleSetting) -> Fix:
    """The default type, and what any file asks to be float64, become float32. Raises Refused, also where data
    may stay float64: a product of both fails."""
    edits = setting.edits()
    arrays: list[cst.BaseExpression] = []
    found: list[tuple[Source | None, list[cst.BaseExpression]]] = []
    for source in context.sources():
        if unclear(source):
            raise Refused("other tensors may be float64 too, as the text does not show their type")
        asked = [node for node in asked_for(source) if node is not setting.origin.node]
        beside = arrays_beside(source, asked)
        arrays += beside
        for node in (*asked, *beside):
            context.reached.keep(source, node)  # what runs later meets the model, too
        found.append((source, [*asked, *beside]))
    graph = whole_graph(context.profile.facts.dataflow)
    read = doubles_read(graph) if graph is not None else 0
    if read < len(arrays):
        raise Refused("arrays of NumPy's may be float64 too, or whole numbers")
    if (graph is None or read) and not all(map(_of_tensors, context.sites(Loader.KIND))):
        raise Refused("a loader's samples may be arrays of NumPy's, which are float64 too")
    return in_float32(found, edits)


def _of_tensors(site: Site) -> bool:
    """Whether a loader's dataset holds its samples as tensors, and does not make them when asked."""
    made = facts_of(Loader, site)
    return made.rows_type == "TensorDataset" or bool(made.rows_tensors)


def doubles_read(graph: Graph) -> int:
    """How many tensors of float64 the step reads that are data."""
    data = before_step(graph).difference(graph.flow.buffers)
    return sum(graph.dtype(value) == "float64" for value in data)
