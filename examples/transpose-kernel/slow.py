"""A layer that keeps its weight transposed, with a transpose kernel of its own: one row a program.

    warpline profile examples/transpose-kernel/slow.py

Each program reads a row and stores a column: neighbouring threads write 4 bytes each into sectors of
32 bytes that lie far apart. Without a CUDA device the same access is made by a strided copy.
"""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
ROWS, COLUMNS, BATCH, STEPS = (8192, 4096, 64, 200) if device == "cuda" else (1024, 512, 16, 200)

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


class Transposed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return transpose(x)

    @staticmethod
    def backward(ctx, gradient):
        return transpose(gradient)


class TiedLayer(nn.Module):
    """An autoencoder's layer: decodes with the transpose of the weight it encodes with."""

    def __init__(self, rows, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows, columns) / columns**0.5)

    def forward(self, x):
        hidden = torch.relu(x @ Transposed.apply(self.weight))
        return hidden @ self.weight


def main():
    torch.manual_seed(0)
    model = TiedLayer(ROWS, COLUMNS).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(STEPS):
        x = torch.randn(BATCH, COLUMNS, device=device)
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
