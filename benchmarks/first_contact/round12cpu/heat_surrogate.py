# A convolutional surrogate for heat flow in plates. The explicit solver makes new trajectories on
# the fly, and the surrogate learns the jump over STRIDE solver steps.
import torch
from torch import nn

STRIDE, FRAMES, GRID = 4, 88, 64


class HeatSolver:
    def __init__(self, plates, gen):
        self.plates, self.gen = plates, gen

    def initial(self):
        t = torch.zeros(self.plates, GRID, GRID)
        for plate in range(self.plates):  # one hot rectangle each
            y, x = torch.randint(4, GRID - 20, (2,), generator=self.gen).tolist()
            t[plate, y:y + 16, x:x + 16] = 1.0
        return t

    @staticmethod
    def advance(t, kappa=0.2):
        p = nn.functional.pad(t.unsqueeze(1), (1, 1, 1, 1), mode="replicate").squeeze(1)
        around = p[:, 2:, 1:-1] + p[:, :-2, 1:-1] + p[:, 1:-1, 2:] + p[:, 1:-1, :-2]
        return torch.lerp(t, around / 4, 4 * kappa)

    @torch.no_grad()
    def trajectory(self):
        state = self.initial()
        frames = state.unsqueeze(0)  # flaw: cat-in-loop
        for _ in range(FRAMES - 1):
            state = self.advance(state)
            frames = torch.cat((frames, state.unsqueeze(0)), dim=0)  # flaw: cat-in-loop
        return frames  # flaw: cat-in-loop


def surrogate(ch=6):
    return nn.Sequential(nn.Conv2d(1, ch, 5, padding=2), nn.Tanh(), nn.Conv2d(ch, 1, 5, padding=2))


def learn(cycles):
    torch.set_num_threads(1)
    torch.manual_seed(2)
    gen = torch.Generator().manual_seed(2)
    solver, net = HeatSolver(4, gen), surrogate()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3, fused=True)
    for c in range(cycles):
        frames = solver.trajectory()
        start = torch.randint(0, FRAMES - STRIDE, (2,), generator=gen)
        now, then = frames[start].flatten(0, 1).unsqueeze(1), frames[start + STRIDE].flatten(0, 1).unsqueeze(1)
        loss = nn.functional.mse_loss(now + net(now), then)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if c % 70 == 69:
            print(f"cycle {c + 1}: {loss.item():.6f}")


learn(cycles=140)
