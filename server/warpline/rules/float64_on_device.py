"""The device computes in float64.

## What it does

Adds up the time of operations on float64 tensors, and points to the line that makes them
float64: `.double()`, `torch.float64`, a NumPy array, or the setting that the type comes from (a field's or a
parameter's default, an entry, an option), where nothing else gives it another value. Where the run recorded
that float64 is torch's default type, that is the call that made it so.

## Why is this slow

Float64 needs twice the memory traffic of float32 and cannot use the fast tensor cores. On all but the
largest GPUs its rate is 1/32 to 1/64 of float32's. On a CPU a vector register holds half as many numbers, and
convolutions lack their fast kernels. What float32 saves is measured on this machine where that can be tried.
Float64 is often unintended: NumPy computes in float64 by
default, and operations that mix float64 and float32 tensors give float64.

Factorizations and solvers (Cholesky, QR, `solve`) may need it: in float32 they can fail for matrices that are
nearly singular. Where the script asks for float64 and its steps call one of them, this is a hint without an
edit.

## Example

```python
import numpy
import torch

weights = torch.from_numpy(numpy.random.rand(512, 512)).cuda()  #> found
for x in loader:
    y = x @ weights
    #^ cost device_ms=20; op aten::mm device_ms=20 dtypes=double,double
```

## Use instead

```python
import numpy
import torch

weights = torch.from_numpy(numpy.random.rand(512, 512)).float().cuda()
for x in loader:
    y = x @ weights
```

## Example

```python
def loss_of(x, y):
    error = (x.double() - y) ** 2  #> found; cost device_ms=20; op aten::pow device_ms=20 dtypes=double,Scalar
    return error.mean()
```

## Use instead

```python
def loss_of(x, y):
    error = (x.float() - y) ** 2
    return error.mean()
```

## Example

Copied and never converted:

```python
import numpy
import torch

wanted = torch.from_numpy(numpy.sin(grid)).to(device)  #> found
inputs = torch.from_numpy(grid).to(device).float()
for step in range(400):
    residual = model(inputs) - wanted
    #^ cost device_ms=20; op aten::sub device_ms=20 dtypes=float,double shapes=[[64,64],[64,64]]
```

## Use instead

```python
import numpy
import torch

wanted = torch.from_numpy(numpy.sin(grid)).float().to(device)
inputs = torch.from_numpy(grid).to(device).float()
for step in range(400):
    residual = model(inputs) - wanted
```

## Example

An array of NumPy's that is passed on:

```python
import numpy as np
import torch

def scatter(points):
    rng = np.random.default_rng(0)
    place = rng.uniform(0, 1, (points, 2))
    names = torch.as_tensor(rng.integers(0, 9, points))
    return torch.as_tensor(place), names  #> found

places, names = scatter(10000)
for step in range(400):
    near = torch.cdist(places, places)
    #^ cost device_ms=20; op aten::cdist device_ms=20 dtypes=double,double shapes=[[10000,2],[10000,2]]
```

## Use instead

```python
import numpy as np
import torch

def scatter(points):
    rng = np.random.default_rng(0)
    place = rng.uniform(0, 1, (points, 2))
    names = torch.as_tensor(rng.integers(0, 9, points))
    return torch.as_tensor(place, dtype=torch.float32), names

places, names = scatter(10000)
for step in range(400):
    near = torch.cdist(places, places)
```

## Example

Arrays that a function is given, some with labels:

```python
import numpy as np
import torch

def tensors(*arrays):
    for array in arrays:
        yield torch.from_numpy(array)  #> found

rng = np.random.default_rng(0)
points, kinds = tensors(rng.normal(size=(10000, 2)), rng.integers(0, 9, 10000))
for step in range(400):
    near = torch.cdist(points, points)
    #^ cost device_ms=20; op aten::cdist device_ms=20 dtypes=double,double shapes=[[10000,2],[10000,2]]
```

## Use instead

```python
import numpy as np
import torch

def tensors(*arrays):
    for array in arrays:
        yield torch.as_tensor(array, dtype=torch.float32 if array.dtype == "float64" else None)

rng = np.random.default_rng(0)
points, kinds = tensors(rng.normal(size=(10000, 2)), rng.integers(0, 9, 10000))
for step in range(400):
    near = torch.cdist(points, points)
```

## Example

A type that a setting names:

```python
from dataclasses import dataclass
import numpy as np
import torch

@dataclass
class Grid:
    rows: int = 512
    precision: type = np.float64  #> found

grid = Grid()
table = torch.from_numpy(np.ascontiguousarray(basis(grid.rows), dtype=grid.precision)).cuda()
for step in range(400):
    field = table @ field
    #^ cost device_ms=20; op aten::mm device_ms=20 dtypes=double,double shapes=[[512,512],[512,512]]
```

## Use instead

```python
from dataclasses import dataclass
import numpy as np
import torch

@dataclass
class Grid:
    rows: int = 512
    precision: type = np.float32

grid = Grid()
table = torch.from_numpy(np.ascontiguousarray(basis(grid.rows), dtype=grid.precision)).cuda()
for step in range(400):
    field = table @ field
```

## Example

On a CPU:

```python
#> device kind=cpu capability=None multiprocessors=0
import torch

model = Net().double()  #> found
for x in loader:
    y = model(x.to(torch.double))
    #^ cost device_ms=20 cpu_ms=20; op aten::mm device_ms=20 dtypes=double,double shapes=[[256,256],[256,256]]
```

## Use instead

```python
import torch

model = Net().float()
for x in loader:
    y = model(x.to(torch.float32))
```

## Fix safety

Unsafe: float32 keeps 24 bits of the mantissa where float64 keeps 53. torch draws other random numbers in it.

## References

- [CUDA arithmetic throughput](https://docs.nvidia.com/cuda/cuda-c-programming-guide/#arithmetic-instructions)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

import libcst as cst

from warpline.model import costs
from warpline.model.dtypes import tf32_allowed
from warpline.model.profile import LineCost, Op
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Refused, Rule, Source
from warpline.rulekit.default_dtype import default_in_float32, default_setting, doubles_read
from warpline.rulekit.double_settings import DoubleSetting, double_setting
from warpline.rulekit.doubles import arrays_beside, asks_for_doubles, doubles, in_float32
from warpline.rulekit.graph import whole_graph
from warpline.rulekit.saving import Spent, less_device_time
from warpline.wire.precision import DOUBLE, FLOATS
from warpline.wire.sites import Autocast, facts_of

#: What autocast casts products to, as trying them is told.
_CAST = {"bfloat16": "bf16", "float16": "fp16"}
#: Factorizations and solvers, by the ends of their operators' names.
_SOLVES = re.compile(
    r"::_?(?:linalg_)?(?:cholesky|lu_factor|lu|ldl_factor|qr|geqrf|eigh?|eigvalsh?|svd|inv|inverse|pinv|solve|lstsq"
    r"|cholesky_solve|cholesky_solve_helper|lu_solve|ldl_solve|solve_triangular|triangular_solve|det|slogdet"
    r"|cholesky_inverse)(?:_ex)?$"
)


_TRY_IT = (
    "the script asks for float64, and a factorization or a solver may fail without it: if yours is well "
    "conditioned, try float32 by hand"
)


#: A file, what makes float64 numbers in it, and the setting that says so.
_Made = tuple[Source, list[cst.BaseExpression], DoubleSetting | None]


class Float64OnDevice(Rule):
    area = "precision"

    def find(self, context: Context) -> Iterator[Draft]:
        compiled = {kernel.name for kernel in context.profile.facts.compiled_kernels if kernel.double}
        spent = Spent(context.profile.lines, partial(_in_float64, compiled))
        total = spent.total
        if not context.matters(total):
            return
        hottest = max(spent, key=lambda cost: (_meets(cost), spent[cost]))
        made = [*_origins(context, [cost.file for cost in sorted(spent, key=lambda cost: -spent[cost])])]
        source, nodes, setting = made[0] if made else (None, [], None)
        default = default_setting(context)
        setting = default or setting
        place = hottest.place
        asked = setting is not None or (source is not None and asks_for_doubles(source))
        wanted = asked and _solves(context)
        saving = (1 - costs.value("single-precision")) * total
        yield context.draft(
            setting.origin.place if setting else source.place(nodes[0]) if source is not None else place,
            "The device computes in float64 for {spent} a step ({share})."
            + (f" The type comes from {setting.origin.words}." if setting else ""),
            context.spent("float64", total),
            cause=place,
            cost_ms=total,
            saving_ms=saving,
            change=spent.tried(
                "narrower",
                *_products_run_in(context),
                otherwise=less_device_time(spent, saving, assumed=True),
            ),
            severity="hint" if wanted else None,
            fixes=[
                _TRY_IT
                if wanted
                else partial(default_in_float32, context, default)
                if default is not None
                else partial(_fix, context, source, nodes, setting, made[1:])
            ],
        )


def _solves(context: Context) -> bool:
    """Whether the step factorizes or solves in float64, which may fail in float32 for want of precision."""
    return any(
        _SOLVES.search(op.name) and _is_float64(op) for cost in context.profile.lines for op in cost.ops
    )


def _fix(
    context: Context,
    source: Source | None,
    nodes: list[cst.BaseExpression],
    setting: DoubleSetting | None,
    others: Sequence[_Made] = (),
) -> Fix:
    """All that is float64 becomes float32: a product of both fails. Raises Refused, also where the step reads
    fewer tensors of float64 than the arrays would make: then some hold labels, say. ``others``: what other
    files make, which is edited too where both a model and its data are float64 and one place makes one of
    them."""
    settled: tuple[cst.BaseExpression, ...] = (*setting.settled, setting.origin.node) if setting else ()
    arrays = arrays_beside(source, nodes) if source is not None else []
    nodes, arrays = ([one for one in found if one not in settled] for found in (nodes, arrays))
    if arrays:
        graph = whole_graph(context.profile.facts.dataflow)
        if graph is None:
            raise Refused("arrays of NumPy's beside it may be float64 too, which the run does not show")
        read = doubles_read(graph)
        models = int(any(graph.dtype(value) == "float64" for value in graph.parameters))
        if 0 < read < len(arrays) + len(nodes) - models:
            raise Refused("arrays of NumPy's beside it may be float64 too, or whole numbers")
        nodes = [*nodes, *arrays] if read else nodes
    found: list[tuple[Source | None, list[cst.BaseExpression]]] = [(source, nodes)]
    if setting is None and source is not None:
        found += _also_needed(context, len(nodes), others)
    return in_float32(found, setting.edits() if setting else None)


def _also_needed(
    context: Context, made: int, others: Sequence[_Made]
) -> Iterator[tuple[Source, list[cst.BaseExpression]]]:
    """Where else float64 numbers are made, if the ``made`` places are too few for a model and for its data.
    Raises Refused if all are."""
    graph = whole_graph(context.profile.facts.dataflow)
    if graph is None:
        return
    model = any(graph.dtype(value) == "float64" for value in graph.parameters)
    needed = int(model) + int(doubles_read(graph) > 0)
    for source, nodes, setting in others:
        if made >= needed or setting is not None:
            break
        made += len(nodes)
        yield source, nodes
    if made < needed:
        raise Refused("the model and its data are float64, and only one of the two places was found")


def _products_run_in(context: Context) -> tuple[str, ...]:
    """The precision of products of float32 in this script, which leaves those of float64 alone; none for
    float32 itself."""
    for site in context.sites(Autocast.KIND):
        made = facts_of(Autocast, site)
        if made.enabled and made.device == context.device.kind and made.dtype in _CAST:
            return (_CAST[made.dtype],)
    return ("tf32",) if tf32_allowed("aten::mm", context.profile.facts.flags) else ()


def _in_float64(compiled: set[str], cost: LineCost) -> float:
    """``compiled``: the names of kernels that torch.compile made for float64."""
    doubles = [op for op in cost.ops if _is_float64(op)]
    if all(op in doubles for op in cost.ops if any(dtype in FLOATS for dtype in op.dtypes[:2])):
        # What joins a list of tensors is recorded without their type: here nothing else is on the line.
        doubles += [op for op in cost.ops if doubles and op.dtypes[:1] == ("TensorList",)]
    kernels = sum(kernel.device_ms for kernel in cost.kernels if kernel.name in compiled)
    return min(sum(op.device_ms for op in doubles) + kernels, cost.step_ms)


def _is_float64(op: Op) -> bool:
    """A number (shape ``()``) beside tensors takes their dtype, whatever its own is, and alone it is as fast
    in any: torch on a CPU makes one of float64 where a tensor is divided by a number of Python's."""
    doubles = [at for at, dtype in enumerate(op.dtypes[:2]) if dtype in DOUBLE]
    return any(at >= len(op.shapes) or op.shapes[at] for at in doubles)


def _meets(cost: LineCost) -> bool:
    """Whether numbers of another type become float64 here, by meeting such a tensor."""
    return any(
        op.phase == "forward" and _is_float64(op) and (FLOATS - DOUBLE) & set(op.dtypes[:2])
        for op in cost.ops
        if all(op.shapes[:2])
    )


def _origins(context: Context, hot: list[str]) -> Iterator[_Made]:
    """The expressions that make float64 numbers, by file; the file of the hottest line comes first."""
    own = (source.path for source in context.sources())
    for file in dict.fromkeys([*hot, context.profile.manifest.script, *own]):
        source = context.source(file)
        setting, others = double_setting(context, source)
        nodes = [
            node
            for node in doubles(source)
            if node not in others and context.reached.node(source, node) is not False
        ]
        if nodes or setting is not None:
            yield source, nodes, setting
