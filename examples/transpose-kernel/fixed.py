"""`slow.py` as one would write it with care: tiles are read along rows and written along columns.

    warpline profile examples/transpose-kernel/fixed.py
"""

import torch
from torch.profiler import record_function

device = "cuda" if torch.cuda.is_available() else "cpu"
ROWS, COLUMNS, LAYERS, MATRICES = (8192, 4096, 4000, 4) if device == "cuda" else (1024, 512, 400, 4)

if device == "cuda":
    import triton
    import triton.language as tl

    TILE = 64

    @triton.jit
    def transpose_tiles(source, target, rows, columns, TILE: tl.constexpr):
        row = (tl.program_id(1) * TILE + tl.arange(0, TILE))[:, None]
        column = (tl.program_id(0) * TILE + tl.arange(0, TILE))[None, :]
        inside = (row < rows) & (column < columns)
        values = tl.load(source + row * columns + column, mask=inside)
        tl.store(target + column * rows + row, values, mask=inside)

    def transpose(x):
        rows, columns = x.shape
        target = torch.empty(columns, rows, device=x.device, dtype=x.dtype)
        grid = triton.cdiv(columns, TILE), triton.cdiv(rows, TILE)
        transpose_tiles[grid](x, target, rows, columns, TILE=TILE)
        return target
else:
    print("no CUDA device: the Triton kernel is replaced by a copy on the CPU")

    def transpose(x):
        rows, columns = x.shape
        target = torch.empty(columns, rows, dtype=x.dtype)
        return target.copy_(x.t())


def main():
    torch.manual_seed(0)
    # Query, key, value and output of a layer; the layers of a checkpoint are as large as one another.
    weights = [torch.randn(ROWS, COLUMNS, device=device) for _ in range(MATRICES)]
    for _ in range(LAYERS):
        with record_function("step"):
            turned = [transpose(weight) for weight in weights]
    print("turned", LAYERS * len(turned), "matrices, right:", torch.equal(turned[0], weights[0].t()))


if __name__ == "__main__":
    main()
