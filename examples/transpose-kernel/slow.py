"""Turns the matrices of a checkpoint for a runtime that wants their columns first: one row a program.

    warpline profile examples/transpose-kernel/slow.py

Each program reads a row and stores a column: neighbouring threads write 4 bytes each into sectors of
32 bytes that lie far apart. Without a CUDA device the same access is made by a strided copy.
"""

import torch
from torch.profiler import record_function

device = "cuda" if torch.cuda.is_available() else "cpu"
ROWS, COLUMNS, LAYERS, MATRICES = (8192, 4096, 4000, 4) if device == "cuda" else (1024, 512, 400, 4)

if device == "cuda":
    import triton
    import triton.language as tl

    @triton.jit
    def transpose_rows(source, target, rows, columns, BLOCK: tl.constexpr):
        row = tl.program_id(0)
        for start in range(0, columns, BLOCK):
            column = start + tl.arange(0, BLOCK)
            inside = column < columns
            values = tl.load(source + row * columns + column, mask=inside)
            tl.store(target + column * rows + row, values, mask=inside)

    def transpose(x):
        rows, columns = x.shape
        target = torch.empty(columns, rows, device=x.device, dtype=x.dtype)
        transpose_rows[(rows,)](x, target, rows, columns, BLOCK=1024)
        return target
else:
    print("no CUDA device: the Triton kernel is replaced by a strided copy on the CPU")

    def transpose(x):
        rows, columns = x.shape
        target = torch.empty(columns, rows, dtype=x.dtype)
        for row in range(rows):
            target[:, row] = x[row]
        return target


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
