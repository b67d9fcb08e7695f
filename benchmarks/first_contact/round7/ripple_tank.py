"""Damped waves in a tank with obstacles; one Triton kernel advances the field."""

import torch
import torch.nn.functional as F

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
ROWS, COLS, FRAMES, SUBSTEPS = (8192, 8192, 120, 20) if CUDA else (64, 64, 4, 3)
COURANT, DAMPING = 0.4, 0.0005

if triton is not None:

    @triton.jit
    def advance_kernel(now_ptr, before_ptr, wall_ptr, rows, cols, courant, damping, BLOCK: tl.constexpr):
        row = tl.program_id(1).to(tl.int64) + 1
        col = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = (col > 0) & (col < cols - 1)
        at = row * cols + col
        centre = tl.load(now_ptr + at, mask=inside, other=0.0)
        around = tl.load(now_ptr + at - 1, mask=inside, other=0.0) + tl.load(now_ptr + at + 1, mask=inside, other=0.0)
        around += tl.load(now_ptr + at - cols, mask=inside, other=0.0) + tl.load(now_ptr + at + cols, mask=inside, other=0.0)
        before = tl.load(before_ptr + at, mask=inside, other=0.0)
        is_open = tl.load(wall_ptr + at, mask=inside, other=0) == 0
        after = (2 - damping) * centre - (1 - damping) * before + courant * courant * (around - 4 * centre)
        tl.store(before_ptr + at, tl.where(is_open, after, 0.0), mask=inside)


def advance(now, before, wall):
    """Writes the next field over `before`."""
    if CUDA:
        grid = (triton.cdiv(COLS, 1024), ROWS - 2)
        advance_kernel[grid](now, before, wall, ROWS, COLS, COURANT, DAMPING, BLOCK=1024, num_warps=4)
        return
    kernel = torch.tensor([[0.0, 1, 0], [1, -4, 1], [0, 1, 0]]).view(1, 1, 3, 3)
    around = F.conv2d(now[None, None], kernel)[0, 0]
    inner = (slice(1, -1), slice(1, -1))
    after = (2 - DAMPING) * now[inner] - (1 - DAMPING) * before[inner] + COURANT**2 * around
    before[inner] = after.masked_fill(wall[inner].bool(), 0)


def obstacles():
    wall = torch.zeros(ROWS, COLS, dtype=torch.uint8, device=DEVICE)
    wall[:, COLS // 3] = 1
    for slit in (3, 4, 5):
        wall[ROWS * slit // 8 - ROWS // 64 : ROWS * slit // 8 + ROWS // 64, COLS // 3] = 0
    return wall


@torch.inference_mode()
def main():
    wall = obstacles()
    now = torch.zeros(ROWS, COLS, device=DEVICE)
    now[:, COLS // 8 : COLS // 8 + max(COLS // 256, 1)] = 1.0
    before = now.clone()
    energy = torch.zeros(FRAMES, device=DEVICE)
    for frame in range(FRAMES):
        for _ in range(SUBSTEPS):
            advance(now, before, wall)
            now, before = before, now
        energy[frame] = torch.linalg.vector_norm(now[:, COLS // 3 :])
    print("energy behind the slits", [round(e, 4) for e in energy[:: max(FRAMES // 6, 1)].tolist()])


if __name__ == "__main__":
    main()
