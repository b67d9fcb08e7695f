"""Few operators, each over a million elements and more, with autograd."""

import torch


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        gate = torch.sigmoid(x)
        ctx.save_for_backward(x, gate)
        return x * gate

    @staticmethod
    def backward(ctx, given):
        x, gate = ctx.saved_tensors
        slope = gate * (1 + x * (1 - gate))
        return given * slope


def main():
    torch.manual_seed(0)
    scale = torch.nn.Parameter(torch.ones(1 << 10))
    shift = torch.nn.Parameter(torch.zeros(1 << 10))
    optimizer = torch.optim.SGD([scale, shift], lr=1e-4)
    x = torch.randn(1 << 10, 1 << 10)
    while True:
        y = x * scale + shift
        y = Swish.apply(y)
        y = torch.nn.functional.gelu(y)
        mask = torch.rand_like(y) > 0.1
        y = y * mask
        y = y.clamp(-3, 3).exp()
        loss = y.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
