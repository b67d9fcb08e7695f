"""Memory accesses of a Triton kernel are not coalesced.

## What it does

Analyzes the addresses of each `tl.load` and `tl.store` in the user's own Triton kernels that take a
measurable part of the step. Finds accesses at which neighbouring elements of the block are one row
apart in memory. Those that share an assigned index are one finding, where it is computed. If all addresses
have the number of the program where the index of the block should be, the finding is at that index, or at
the address if a loop walks through the index.

## Why is this slow

Memory is transferred in sectors of 32 bytes. If neighbouring threads access neighbouring numbers, every
byte of a sector is used. If they access numbers one row apart, each thread transfers its own sector and
uses one number of it.

## Example

```python
import torch
import triton
import triton.language as tl


@triton.jit
def transpose_kernel(x_ptr, y_ptr, rows, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        mask = offs < cols
        values = tl.load(x_ptr + row * cols + offs, mask=mask)
        tl.store(y_ptr + offs * rows + row, values, mask=mask)  #> found


def transpose(x):
    rows, cols = x.shape
    y = torch.empty(cols, rows, device=x.device, dtype=x.dtype)
    transpose_kernel[(rows,)](x, y, rows, cols, BLOCK=1024)
    #^ cost device_ms=2; kernel transpose_kernel count=1 device_ms=2 grid=(8192,1,1) block=(128,1,1)
    return y
```

## Use instead

Tiles, read by rows and written by columns; the launch does not change:

```python
import torch
import triton
import triton.language as tl


@triton.jit
def transpose_kernel(x_ptr, y_ptr, rows, cols, BLOCK: tl.constexpr):
    # Each program takes tiles in turn: read along rows, turned on the chip, written along columns.
    TILE: tl.constexpr = 64
    programs = tl.num_programs(0)
    across = tl.cdiv(cols, TILE)
    for tile in range(tl.program_id(0), tl.cdiv(rows, TILE) * across, programs):
        down = tile // across * TILE + tl.arange(0, TILE)
        along = tile % across * TILE + tl.arange(0, TILE)
        values = tl.load(
            x_ptr + down[:, None] * cols + along[None, :],
            mask=(down[:, None] < rows) & (along[None, :] < cols),
        )
        tl.store(
            y_ptr + along[:, None] * rows + down[None, :],
            tl.trans(values),
            mask=(along[:, None] < cols) & (down[None, :] < rows),
        )


def transpose(x):
    rows, cols = x.shape
    y = torch.empty(cols, rows, device=x.device, dtype=x.dtype)
    transpose_kernel[(rows,)](x, y, rows, cols, BLOCK=1024)
    return y
```

## Example

The block runs down the columns, and neighbours in a row are different programs:

```python
import triton
import triton.language as tl

@triton.jit
def gate_kernel(values, gates, ROWS, WIDTH, SIZE: tl.constexpr):
    column = tl.program_id(1)
    row = tl.program_id(0) * SIZE + tl.arange(0, SIZE)  #> found
    place = row * WIDTH + column
    gate = tl.load(gates + place, mask=row < ROWS) - tl.load(gates + place - WIDTH, mask=row < ROWS)
    tl.store(values + row * WIDTH + column, gate * tl.load(values + place, mask=row < ROWS), mask=row < ROWS)

def apply_gates(values, gates):
    rows, width = values.shape
    gate_kernel[(triton.cdiv(rows, 512), width)](values, gates, rows, width, SIZE=512)
    #^ cost device_ms=3; kernel gate_kernel count=1 device_ms=3 grid=(64,4096,1)
```

## Use instead

The block runs along the row: `column` has the range, `row` is the number of the program, and the grid has
`rows` programs of one and `triton.cdiv(width, 512)` of the other.

## Example

Each program walks down its own column:

```python
import triton
import triton.language as tl

@triton.jit
def column_sums_kernel(grads, sums, ROWS, WIDTH, SIZE: tl.constexpr):
    column = tl.program_id(0)
    total = tl.zeros((SIZE,), dtype=tl.float32)
    for begin in range(0, ROWS, SIZE):
        row = begin + tl.arange(0, SIZE)
        place = grads + row * WIDTH + column  #> found
        total += tl.load(place, mask=row < ROWS, other=0.0)
    tl.store(sums + column, tl.sum(total, axis=0))

def column_sums(grads, sums):
    rows, width = grads.shape
    column_sums_kernel[(width,)](grads, sums, rows, width, SIZE=1024)
    #^ cost device_ms=3; kernel column_sums_kernel count=1 device_ms=3 grid=(4096,1,1)
```

## Use instead

A range of columns for each program, `column = tl.program_id(0) * 64 + tl.arange(0, 64)`, and tiles of
`row[:, None] * WIDTH + column[None, :]`.

## Example

The block runs through a matrix in the wrong order:

```python
import triton
import triton.language as tl

@triton.jit
def gated_kernel(gates, values, bias, rows, cols, BLOCK: tl.constexpr):
    flat = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = flat < rows * cols
    place = (flat % rows) * cols + flat // rows  #> found
    gate = tl.load(gates + place, mask=live) + tl.load(bias + flat // rows, mask=live)
    tl.store(values + place, gate * tl.load(values + place, mask=live), mask=live)

def gated(gates, values, bias):
    rows, cols = values.shape
    gated_kernel[(triton.cdiv(rows * cols, 1024),)](gates, values, bias, rows, cols, BLOCK=1024)
    #^ cost device_ms=3; kernel gated_kernel count=1 device_ms=3 grid=(8192,1,1)
```

## Use instead

Quotient and remainder by the length of a row: `place = flat`, and the bias at `flat % cols`.

## Fix safety

Marked unsafe, although no number is computed and the same numbers are moved: the edit assumes one
program per row, as the addresses say. With more programs than rows, the result would differ.

## References

- [CUDA: coalesced access to global memory](https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/#coalesced-access-to-global-memory)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.change import Change, Fuse
from warpline.model.kernel import KernelInside
from warpline.rulekit import Context, Draft, Rule, count, percent
from warpline.rulekit.addresses import Access, accesses_of, index_of, lanes_of, remainder_of
from warpline.rulekit.saving import less_device_time
from warpline.rulekit.terms import follow
from warpline.rulekit.tiles import tiled
from warpline.rulekit.triton import TritonKernel, triton_kernels

#: The smallest piece that moves between the chip and memory.
_SECTOR_BYTES = 32

_BYTES = {"double": 8, "float": 4, "c10::Half": 2, "c10::BFloat16": 2, "int": 4, "long": 8, "long int": 8}


#: Nsight Compute's word on a line: with this share of the moved bytes used nothing is amiss.
_USED_PERCENT = 60.0


#: What to do where the block runs down the columns of an array that it runs through as a whole.
_REMAINDER = (
    "divide the index of the block by the length of what runs along memory, and use the remainder for it: "
    "neighbours in the block are then neighbours in memory"
)


class UncoalescedAccess(Rule):
    area = "kernels"
    tags = ("kernel",)
    needs = ("kernels", "occupancy")

    def find(self, context: Context) -> Iterator[Draft]:
        for kernel in triton_kernels(context):
            spent = min(kernel.kernel.device_ms, kernel.cost.step_ms)
            if not context.matters(spent):
                continue
            inside = _inside(context, kernel)
            if inside is not None:
                yield from _measured(context, kernel, inside, spent)
            elif not _saturates(kernel):
                yield from _estimated(context, kernel, spent)


def _estimated(context: Context, kernel: TritonKernel, spent: float) -> Iterator[Draft]:
    """The accesses by the addresses that the source computes."""
    flow = follow(kernel.source, kernel.function)
    accesses = list(accesses_of(kernel, flow))
    scattered = [access for access in accesses if access.scattered]
    used = _element_bytes(context, kernel)
    moved = len(accesses) - len(scattered) + len(scattered) * _SECTOR_BYTES / used
    saving = spent * (1 - len(accesses) / moved)
    roofline = kernel.cost.roofline
    indices: dict[cst.BaseExpression, list[Access]] = {}
    lanes = lanes_of(accesses, kernel, flow)
    for access in scattered:
        # A loop through the lanes' index may stay: the address is what has to change.
        wrong = lanes.index if lanes and not lanes.walked else index_of(access, kernel, flow)
        indices.setdefault(wrong, []).append(access)
    for index, sharing in indices.items():
        kinds = [
            kind
            for kind, store in (("loads", False), ("stores", True))
            if any(one.store is store for one in sharing)
        ]
        here = "here" if index is sharing[0].call else "with this index"
        yield context.draft(
            kernel.source.place(index),
            f"Uncoalesced {' and '.join(kinds)}: about {{used}} of every "
            f"{{sector}} bytes transferred {here} are used. The kernel "
            f"`{kernel.function.name.value}` takes {{spent}} a step ({{share}}). (An estimate from "
            "its addresses; Nsight Compute measures it.)",
            {
                "sector": count("bytes moved", _SECTOR_BYTES, "bytes per sector"),
                "used": count("bytes used", used, "bytes per sector, estimated"),
                **context.spent("kernel", spent),
            },
            cause=kernel.cost.place,
            cost_ms=spent,
            saving_ms=saving,
            change=_at_bandwidth(kernel, roofline.bytes if roofline is not None else 0.0, saving),
            fixes=[
                _REMAINDER
                if lanes is None and remainder_of(accesses, kernel, flow)
                else partial(tiled, kernel, flow, accesses)
                if lanes is None
                else "take a range for the index that runs along memory, which is the number of the program: "
                "each program then has some neighbours instead of one"
                if lanes.walked
                else "take the range of the block for the index that runs along memory, and the number of "
                "the program for this one"
            ],
        )


def _measured(context: Context, kernel: TritonKernel, inside: KernelInside, spent: float) -> Iterator[Draft]:
    """The accesses by the sectors that Nsight Compute counted on each line."""
    flow = follow(kernel.source, kernel.function)
    accesses = list(accesses_of(kernel, flow))
    # What its memory traffic would be with every byte used: its time cannot shrink by more.
    ideal = sum(line.ideal_sectors for line in inside.lines)
    keep = ideal / sum(line.sectors for line in inside.lines)
    needed = ideal * _SECTOR_BYTES * kernel.kernel.count
    for line in inside.lines:
        used = line.used_percent
        if used is None or used >= _USED_PERCENT or line.file != kernel.source.path:
            continue
        yield context.draft(
            line.place,
            "{used} of the bytes transferred here are used: {sectors} sectors of global "
            "memory per launch, counted by Nsight Compute, where {ideal} would be enough. The "
            f"kernel `{kernel.function.name.value}` takes {{spent}} a step ({{share}}).",
            {
                "used": percent("bytes used", used, "bytes moved"),
                "sectors": count("sectors moved", line.sectors, "sectors"),
                "ideal": count("sectors needed", line.ideal_sectors, "sectors"),
                **context.spent("kernel", spent),
            },
            cause=kernel.cost.place,
            cost_ms=spent,
            saving_ms=spent * (1 - keep),
            change=_at_bandwidth(kernel, needed, spent * (1 - keep)),
            fixes=[partial(tiled, kernel, flow, accesses)],
        )


def _at_bandwidth(kernel: TritonKernel, needed: float, saving_ms: float) -> Change:
    """The kernel as long as the bytes that it needs (a step) take at the device's bandwidth.

    Scattered stores cost more than the bytes of their sectors (each is a transaction of its own, and
    opens a row of the memory for itself), so ``saving_ms``, which those say, is the least: it is what
    is said where ``needed`` is not known.
    """
    if not needed:
        return less_device_time([kernel.cost], saving_ms)
    return Fuse((kernel.cost.place,), kernels=1, bytes=needed)


def _inside(context: Context, kernel: TritonKernel) -> KernelInside | None:
    """What Nsight Compute counted in this kernel, while its lines read as they did then."""
    found = (
        inside
        for inside in context.profile.inside
        if inside.name in (kernel.kernel.name, kernel.function.name.value)
        and any(line.sectors for line in inside.lines)
        and inside.holds_for(context.text)
    )
    return next(found, None)


def _saturates(kernel: TritonKernel) -> bool:
    """Memory is near its limit already, where that was measured."""
    roofline = kernel.cost.roofline
    return roofline is not None and roofline.bound == "memory" and roofline.percent_of_peak >= 60


def _element_bytes(context: Context, kernel: TritonKernel) -> int:
    """The bytes of the smallest type that the launching function works with; 4 (float32) when none was
    seen."""
    place = kernel.cost.file, kernel.cost.function
    costs = [cost for cost in context.profile.lines if (cost.file, cost.function) == place]
    kinds = {kind for cost in costs for op in cost.ops for kind in op.dtypes if kind in _BYTES}
    return min((_BYTES[kind] for kind in kinds), default=4)
