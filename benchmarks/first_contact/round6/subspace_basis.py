"""Finds the leading subspace of stacked snapshots by block iterations with Newton-Schulz steps."""

import os

import torch

torch.set_float32_matmul_precision("high")
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def polar(y, rounds=8):
    """An orthonormal basis of the columns of every matrix in y."""
    y = y / torch.linalg.matrix_norm(y, keepdim=True)
    for _ in range(rounds):
        gram = y.mT @ y
        y = torch.baddbmm(y, y, gram, beta=1.5, alpha=-0.5)
    return y


def snapshots(groups, cells, times, rank):
    modes = torch.randn(groups, cells, rank, device=device)
    course = torch.randn(groups, rank, times, device=device)
    return torch.baddbmm(torch.randn(groups, cells, times, device=device), modes, course, beta=0.1)


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    small = "SMALL" in os.environ
    groups, cells, times, rank, steps = (2, 32, 16, 4, 30) if small else (8, 8192, 4096, 512, 80)
    data = snapshots(groups, cells, times, rank)
    basis = polar(torch.randn(groups, cells, rank, device=device))
    for step in range(steps):
        basis = polar(data @ (data.mT @ basis), rounds=4 if step + 1 < steps else 12)
    kept = torch.linalg.matrix_norm(basis.mT @ data).square()
    share = kept / torch.linalg.matrix_norm(data).square()
    print("share of the energy", [round(v, 3) for v in share.tolist()])


if __name__ == "__main__":
    main()
