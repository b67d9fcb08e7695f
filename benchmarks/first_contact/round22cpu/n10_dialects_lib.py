"""Adam with decoupled weight decay (Loshchilov and Hutter 2019) and a schedule for it."""
import math

import torch
from torch.optim import Optimizer


def cosine(steps, warm):
    def factor(step):
        if step < warm:
            return (step + 1) / warm
        return 0.5 * (1 + math.cos(math.pi * (step - warm) / (steps - warm)))

    return factor


class DecoupledAdam(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()

        for group in self.param_groups:
            for p in group["params"]:  # flaw: parameter-loop
                if p.grad is not None:
                    self._update(p, p.grad, group)
        return loss

    def _update(self, p, grad, group):
        state = self.state[p]
        if not state:
            state["step"] = 0
            state["mean"] = torch.zeros_like(p)
            state["square"] = torch.zeros_like(p)
        state["step"] += 1
        beta1, beta2 = group["betas"]
        mean, square = state["mean"], state["square"]

        p.mul_(1 - group["lr"] * group["weight_decay"])  # flaw: parameter-loop
        mean.mul_(beta1).add_(grad, alpha=1 - beta1)  # flaw: parameter-loop
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)  # flaw: parameter-loop

        correction1 = 1 - beta1 ** state["step"]
        correction2 = 1 - beta2 ** state["step"]
        scale = (square / correction2).sqrt_().add_(group["eps"])  # flaw: parameter-loop
        p.addcdiv_(mean, scale, value=-group["lr"] / correction1)  # flaw: parameter-loop
