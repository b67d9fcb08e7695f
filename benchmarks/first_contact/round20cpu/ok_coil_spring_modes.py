# Lowest vibration modes of many coil springs at once, by subspace iteration with the springs' flexibility matrices.
import numpy as np
import torch

SPRINGS, MASSES, MODES, ROUNDS = 24, 640, 24, 600


def stiffness(rng):
    """A chain of masses with uneven wire and a weak foundation, fixed at one end."""
    wire = 1.0 + 0.3 * rng.random((SPRINGS, MASSES))
    matrix = np.zeros((SPRINGS, MASSES, MASSES))
    place = np.arange(MASSES)
    matrix[:, place, place] = wire + np.roll(wire, -1, axis=1) + 0.05
    matrix[:, place[:-1], place[1:]] = -wire[:, 1:]
    matrix[:, place[1:], place[:-1]] = -wire[:, 1:]
    return matrix


def flexibility(matrix):
    """The inverse is computed once and exactly; the iterations need no more than single precision."""
    return torch.from_numpy(np.linalg.inv(matrix)).float()


def orthonormal(block):
    """Cholesky QR: cheap for tall blocks that are nearly orthogonal already."""
    gram = block.mT @ block
    factor = torch.linalg.cholesky(gram)
    return torch.linalg.solve_triangular(factor.mT, block, upper=True, left=False)


def iterate(flex, shapes):
    moved = flex @ shapes
    softness = (shapes * moved).sum(1)
    return orthonormal(moved), softness


@torch.inference_mode()
def modes(flex, rounds, report):
    start = torch.randn(SPRINGS, MASSES, MODES, generator=torch.Generator().manual_seed(5))
    shapes, _ = torch.linalg.qr(start)
    for number in range(1, rounds + 1):
        shapes, softness = iterate(flex, shapes)
        if number % report == 0:
            first = softness[:, 0].rsqrt()
            print(f"round {number}: first frequencies {[round(value, 4) for value in first[:4].tolist()]}")
    return shapes, softness.clamp_min(1e-9).rsqrt()


shapes, frequencies = modes(flexibility(stiffness(np.random.default_rng(1))), ROUNDS, 100)
error = (shapes.mT @ shapes - torch.eye(MODES)).abs().max()
print(f"modes {tuple(shapes.shape)}, orthogonal to {error:.1e}, mean frequency {frequencies.mean():.4f}")
