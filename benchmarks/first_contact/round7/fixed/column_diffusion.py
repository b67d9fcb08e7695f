"""Implicit vertical diffusion for an atmosphere model: a tridiagonal system in each grid column."""

import torch

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
COLUMNS, LEVELS, STEPS, SUBSTEPS = (262144, 64, 300, 10) if CUDA else (128, 8, 5, 2)

if triton is not None:

    @triton.jit
    def thomas(t_ptr, k_ptr, c_ptr, d_ptr, columns, ratio, LEVELS: tl.constexpr, BLOCK: tl.constexpr):
        column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = column < columns
        start = column
        up = ratio * tl.load(k_ptr + start, mask=inside, other=0.0)
        c = -up / (1 + up)
        d = tl.load(t_ptr + start, mask=inside, other=0.0) / (1 + up)
        tl.store(c_ptr + start, c, mask=inside)
        tl.store(d_ptr + start, d, mask=inside)
        for level in range(1, LEVELS):
            at = start + level * columns
            down = up
            up = ratio * tl.load(k_ptr + at, mask=inside, other=0.0)
            pivot = 1 + down + up + down * c
            c = -up / pivot
            d = (tl.load(t_ptr + at, mask=inside, other=0.0) + down * d) / pivot
            tl.store(c_ptr + at, c, mask=inside)
            tl.store(d_ptr + at, d, mask=inside)
        t = d
        tl.store(t_ptr + start + (LEVELS - 1) * columns, t, mask=inside)
        for back in range(1, LEVELS):
            at = start + (LEVELS - 1 - back) * columns
            t = tl.load(d_ptr + at, mask=inside, other=0.0) - tl.load(c_ptr + at, mask=inside, other=0.0) * t
            tl.store(t_ptr + at, t, mask=inside)


def thomas_reference(t, k, ratio):
    """The same solve for hosts without the kernel."""
    up, down = ratio * k, torch.zeros_like(k)
    down[:, 1:] = up[:, :-1]
    eye = torch.diag_embed(1 + up + down)
    matrix = eye + torch.diag_embed(-up[:, :-1], 1) + torch.diag_embed(-down[:, 1:], -1)
    t.copy_(torch.linalg.solve(matrix, t))


class VerticalDiffusion:
    def __init__(self, columns, levels):
        self.c = torch.empty(levels, columns, device=DEVICE)
        self.d = torch.empty_like(self.c)

    def step(self, t, k, ratio):
        if not CUDA:
            return thomas_reference(t.T, k.T, ratio)
        grid = (triton.cdiv(COLUMNS, 128),)
        thomas[grid](t, k, self.c, self.d, COLUMNS, ratio, LEVELS=LEVELS, BLOCK=128, num_warps=4)


def initial_state():
    height = torch.linspace(0, 1, LEVELS, device=DEVICE)
    surface = 285 + 15 * torch.rand(COLUMNS, device=DEVICE)
    temperature = surface[None, :] - 60 * height[:, None]
    mixing = torch.exp(-6 * height)[:, None] * (0.5 + torch.rand(COLUMNS, device=DEVICE))[None, :]
    mixing[-1] = 0
    return temperature, mixing


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    temperature, mixing = initial_state()
    solver = VerticalDiffusion(COLUMNS, LEVELS)
    heating = 0.01 * torch.randn(COLUMNS, device=DEVICE)
    for step in range(STEPS):
        for _ in range(SUBSTEPS):
            temperature[0] += heating
            solver.step(temperature, mixing, 0.4)
        if step % 100 == 0:
            print(f"step {step}: surface {temperature[0].mean().item():.3f} top {temperature[-1].mean().item():.3f}")
    print(f"mean {temperature.mean().item():.4f}")


if __name__ == "__main__":
    main()
