"""Shallow water on a periodic basin (Lax-Friedrichs), adaptive time step."""
import os
import sys

import torch

TINY = "TINY" in os.environ
N = 64 if TINY else 4096
FRAMES = 4 if TINY else 700
SUBSTEPS = 4
GRAVITY, CFL, DX = 9.81, 0.4, 1.0
where = "cuda" if torch.cuda.is_available() else "cpu"
FAST = "--fast" in sys.argv or not TINY


def maybe_compile(fn):
    return torch.compile(fn) if FAST else fn


@maybe_compile
def advance(h, p, q, clock):
    """SUBSTEPS steps of depth h and momenta p, q."""
    for _ in range(SUBSTEPS):
        u, v = p / h, q / h
        celerity = torch.maximum(u.abs(), v.abs()) + (GRAVITY * h).sqrt()
        dt = CFL * DX / float(celerity.max())  # flaw: graph-break|sync-in-step
        half = 0.5 * dt / DX
        lift = 0.5 * GRAVITY * h * h
        px, qx = p * u + lift, q * u
        py, qy = p * v, q * v + lift
        hn = 0.25 * (h.roll(1, 0) + h.roll(-1, 0) + h.roll(1, 1) + h.roll(-1, 1))
        pn = 0.25 * (p.roll(1, 0) + p.roll(-1, 0) + p.roll(1, 1) + p.roll(-1, 1))
        qn = 0.25 * (q.roll(1, 0) + q.roll(-1, 0) + q.roll(1, 1) + q.roll(-1, 1))
        h, p, q = (
            hn - half * (p.roll(-1, 0) - p.roll(1, 0) + q.roll(-1, 1) - q.roll(1, 1)),
            pn - half * (px.roll(-1, 0) - px.roll(1, 0) + py.roll(-1, 1) - py.roll(1, 1)),
            qn - half * (qx.roll(-1, 0) - qx.roll(1, 0) + qy.roll(-1, 1) - qy.roll(1, 1)),
        )
        clock = clock + dt
    return h, p, q, clock


def initial():
    axis = torch.linspace(-1, 1, N, device=where)
    bump = torch.exp(-20 * (axis[:, None] ** 2 + (axis[None, :] - 0.2) ** 2))
    h = 1.0 + 0.5 * bump
    return h, torch.zeros_like(h), torch.zeros_like(h), torch.zeros((), device=where)


def simulate():
    state = initial()
    crest = torch.empty(FRAMES, device=where)
    with torch.no_grad():
        for frame in range(FRAMES):
            state = advance(*state)
            crest[frame] = state[0].amax()
    return state, crest


if __name__ == "__main__":
    (h, p, q, clock), crest = simulate()
    print(f"t={clock.item():.4f} volume={h.mean().item():.6f} crest={crest[-1].item():.5f} first={crest[0].item():.5f}")
