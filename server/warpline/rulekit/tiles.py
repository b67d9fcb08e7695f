"""Rewrites a Triton kernel that transposes a matrix row by row to work tile by tile."""

from __future__ import annotations

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.addresses import Access, bound, is_range, is_row, pointer, stride_of
from warpline.rulekit.terms import Flow, descend
from warpline.rulekit.triton import TritonKernel
from warpline.syntax.edits import Edits, Refused


def tiled(kernel: TritonKernel, flow: Flow, accesses: list[Access]) -> Fix:
    """The kernel, which copies each row into a column, rewritten to move square tiles. Raises Refused for
    another one."""
    loads = [access for access in accesses if not access.store]
    stores = [access for access in accesses if access.store]
    reason = "only a kernel that copies each row into a column can be rewritten to use tiles"
    if len(loads) != 1 or len(stores) != 1 or len(stores[0].call.args) < 2:
        raise Refused(reason)
    value = flow.terms.get(stores[0].call.args[1].value)
    if value is None or value is not flow.terms.get(loads[0].call):
        raise Refused(reason)
    if any(term.op == "cast" for term in flow.terms.values()):
        raise Refused("an index is converted, perhaps because the addresses need 64 bits")
    source = kernel.source
    pointers = [pointer(access, kernel) for access in (loads[0], stores[0])]
    row_stride = stride_of(loads[0], is_row)
    column_stride = stride_of(stores[0], is_range)
    columns = bound(loads[0], flow, source)
    if not row_stride or not column_stride or columns is None or None in pointers:
        raise Refused(reason)
    if stride_of(loads[0], is_range) != "" or stride_of(stores[0], is_row) != "":
        raise Refused(reason)
    ids = [call for call in descend(kernel.function, cst.Call) if source.is_named(call.func, "program_id")]
    taken = {"TILE", "programs", "across", "tile", "down", "along", "values"} & set(kernel.parameters)
    # As the kernel writes it itself: the import may be under a condition.
    tl = source.code(loads[0].call.func).rpartition(".")[0]
    if len(ids) != 1 or taken or not tl:
        raise Refused("its grid has more than one dimension" if len(ids) != 1 else reason)
    edits = Edits(source)
    code = _TILED.format(
        tl=tl,
        x=pointers[0],
        y=pointers[1],
        a=row_stride,
        b=column_stride,
        columns=columns,
        rows=_rows(kernel) or "programs",
    )
    body = [
        item
        for item in kernel.function.body.body
        if isinstance(item, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    ]
    if kernel.function.get_docstring() is not None:
        body = body[1:]
    edits.replace_statement(body[0], code)
    for statement in body[1:]:
        edits.remove(statement)
    return edits.fix("Copy tiles instead of rows", "unsafe")


def _rows(kernel: TritonKernel) -> str | None:
    """The parameter that the launch passes its number of programs for: ``kernel[(n,)](…, n, …)``.

    Of a parameter the compiler knows whether 16 divides it, and then joins what the mask lets through
    into wide stores; of the number of programs it knows nothing.
    """
    grid = kernel.launch[1].func if kernel.launch is not None else None
    if not isinstance(grid, cst.Subscript) or len(grid.slice) != 1:
        return None
    index = grid.slice[0].slice
    size = index.value if isinstance(index, cst.Index) else None
    if not isinstance(size, cst.Tuple) or len(size.elements) != 1:
        return None
    programs = size.elements[0].value
    passed = ((name, kernel.passed(name)) for name in kernel.parameters)
    return next((name for name, value in passed if value is not None and value.deep_equals(programs)), None)


_TILED = """
# Each program takes tiles in turn: read along rows, turned on the chip, written along columns.
TILE: {tl}.constexpr = 64
programs = {tl}.num_programs(0)
across = {tl}.cdiv({columns}, TILE)
for tile in range({tl}.program_id(0), {tl}.cdiv({rows}, TILE) * across, programs):
    down = tile // across * TILE + {tl}.arange(0, TILE)
    along = tile % across * TILE + {tl}.arange(0, TILE)
    values = {tl}.load(
        {x} + down[:, None] * {a} + along[None, :],
        mask=(down[:, None] < {rows}) & (along[None, :] < {columns}),
    )
    {tl}.store(
        {y} + along[:, None] * {b} + down[None, :],
        {tl}.trans(values),
        mask=(along[:, None] < {columns}) & (down[None, :] < {rows}),
    )
"""
