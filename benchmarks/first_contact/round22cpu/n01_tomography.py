"""Reconstruct a stack of sample slices from parallel-beam projections.

    python n01_tomography.py --size 64 --angles 48 --slices 32
"""
import argparse
import time

import numpy as np
import torch

from n01_tomography_lib import AcceleratedSirt, Geometry, phantom

torch.set_default_dtype(torch.float64)  # flaw: float64-on-device


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=64, help="pixels along an edge of a slice")
    parser.add_argument("--angles", type=int, default=48)
    parser.add_argument("--slices", type=int, default=32)
    parser.add_argument("--iterations", type=int, default=120)
    parser.add_argument("--noise", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=7)
    return parser.parse_args()


@torch.inference_mode()
def main():
    args = arguments()
    rng = np.random.default_rng(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    geometry = Geometry(args.size, args.angles)
    truth = phantom(rng, args.size, args.slices)
    weights = geometry.weights()
    clean = weights @ truth
    sinogram = clean + args.noise * clean.std() * rng.standard_normal(clean.shape)

    dtype = torch.get_default_dtype()
    solver = AcceleratedSirt(
        torch.tensor(weights, dtype=dtype, device=device),
        torch.tensor(sinogram, dtype=dtype, device=device),
    )
    truth = torch.tensor(truth, dtype=dtype, device=device)

    began = time.perf_counter()
    for iteration, volume in enumerate(solver.run(args.iterations), start=1):
        if iteration % 40 == 0:
            misfit = solver.misfit(volume)
            error = torch.linalg.vector_norm(volume - truth) / torch.linalg.vector_norm(truth)
            print(f"iteration {iteration:4d}  misfit {misfit:.4f}  error {error:.4f}", flush=True)
    spent = time.perf_counter() - began
    print("finished" if spent > 0 else "clock went backwards")


if __name__ == "__main__":
    main()
