"""Latent world model (next-state prediction) with a small hook-based training loop."""
import collections

import torch
from torch import nn
import torch.nn.functional as F

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
SIZES = dict(state=256, action=32, width=1536, depth=24, batch=8192) if GPU else dict(
    state=16, action=8, width=32, depth=3, batch=16)
STEPS = 140 if GPU else 4


class ResidualMLP(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, width)
        self.down = nn.Linear(width, width)

    def forward(self, x):
        return x + self.down(F.silu(self.up(self.norm(x))))


class WorldModel(nn.Module):
    """Predicts the change of the state under an action."""

    def __init__(self, state, action, width, depth):
        super().__init__()
        self.enter = nn.Linear(state + action, width)
        self.trunk = nn.ModuleList(ResidualMLP(width) for _ in range(depth))
        self.leave = nn.Linear(width, state)

    def forward(self, state, action):
        h = self.enter(torch.cat([state, action], dim=-1))
        for block in self.trunk:
            h = block(h)
        return state + self.leave(h)


class Hook:
    def after_backward(self, loop):
        pass

    def after_step(self, loop):
        pass

    def finish(self, loop):
        pass


class LossHook(Hook):
    def __init__(self):
        self.losses = []

    def after_step(self, loop):
        self.losses.append(loop.loss.detach())

    def finish(self, loop):
        print(f"loss {self.losses[0].item():.5f} -> {self.losses[-1].item():.5f}")


class GradientNormHook(Hook):
    """Keeps the gradient norm of each layer, for plots of vanishing and exploding gradients."""

    def __init__(self, model):
        self.names = [name for name, p in model.named_parameters() if p.requires_grad]
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.history = collections.defaultdict(list)

    def after_backward(self, loop):
        norms = torch._foreach_norm([p.grad for p in self.parameters])
        for name, norm in zip(self.names, norms):
            self.history[name].append(norm)

    def finish(self, loop):
        peak = {name: torch.stack(values).max().item() for name, values in self.history.items()}
        for name in sorted(peak, key=peak.get, reverse=True)[:3]:
            print(f"largest gradient {name:24s} {peak[name]:.4f}")


class Loop:
    def __init__(self, model, optimizer, hooks):
        self.model, self.optimizer, self.hooks = model, optimizer, hooks
        self.loss = None

    def call(self, event):
        for hook in self.hooks:
            getattr(hook, event)(self)

    def run(self, batches, steps):
        for _, (state, action, following) in zip(range(steps), batches):
            with torch.autocast(DEVICE, dtype=torch.bfloat16):
                predicted = self.model(state, action)
            self.loss = F.smooth_l1_loss(predicted.float(), following)
            self.optimizer.zero_grad()
            self.loss.backward()
            self.call("after_backward")
            self.optimizer.step()
            self.call("after_step")
        self.call("finish")


def transitions(state, action, batch):
    """Rotations of the state whose speed depends on the action."""
    gen = torch.Generator(DEVICE).manual_seed(0)
    mix = torch.randn(action, state, device=DEVICE, generator=gen) / action ** 0.5
    while True:
        s = torch.randn(batch, state, device=DEVICE, generator=gen)
        a = torch.randn(batch, action, device=DEVICE, generator=gen)
        yield s, a, s.roll(1, dims=1) + 0.5 * torch.tanh(a @ mix)


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    size = dict(SIZES)
    batch = size.pop("batch")
    model = WorldModel(**size).to(DEVICE)
    if GPU:
        for block in model.trunk:
            block.compile()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    loop = Loop(model, optimizer, [LossHook(), GradientNormHook(model)])
    loop.run(transitions(size["state"], size["action"], batch), STEPS)


if __name__ == "__main__":
    main()
