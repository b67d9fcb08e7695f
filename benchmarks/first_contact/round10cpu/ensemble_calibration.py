"""Ensemble of small regressors trained together with torch.func."""

import copy

import torch
from torch import nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap


def make_model():
    return nn.Sequential(
        nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2)
    )


def gaussian_nll(outputs, y):
    mean, log_variance = outputs.unbind(-1)
    log_variance = log_variance.clamp(-8, 4)
    return (0.5 * (log_variance + (y - mean).square() * torch.exp(-log_variance))).mean()


def simulate(count, generator):
    x = 2 * torch.rand(count, 8, generator=generator) - 1
    spread = 0.05 + 0.2 * x[:, 1].abs()
    y = torch.sin(3 * x[:, 0]) + x[:, 2] * x[:, 3]
    return x, y + spread * torch.randn(count, generator=generator)


def main(members=12, batch=128, steps=700, lr=0.01, momentum=0.9):
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    x, y = simulate(20_000, generator)
    models = [make_model() for _ in range(members)]
    base = copy.deepcopy(models[0]).to("meta")
    params, buffers = stack_module_state(models)
    params = {name: p.detach() for name, p in params.items()}
    velocity = {name: torch.zeros_like(p) for name, p in params.items()}

    def loss_of(p, b, xs, ys):
        return gaussian_nll(functional_call(base, (p, b), (xs,)), ys)

    step_of_all = vmap(grad_and_value(loss_of))

    for step in range(1, steps + 1):
        picks = torch.randint(len(x), (members, batch))
        grads, losses = step_of_all(params, buffers, x[picks], y[picks])
        for name, grad in grads.items():
            velocity[name].mul_(momentum).add_(grad)
            params[name].sub_(velocity[name], alpha=lr)
        if step % 140 == 0:
            print(f"step {step}: mean loss {losses.mean().item():.4f}")

    with torch.inference_mode():
        test_x, test_y = simulate(2000, generator)
        outputs = vmap(lambda p, b: functional_call(base, (p, b), (test_x,)))(params, buffers)
        mean = outputs[..., 0].mean(0)
        spread = (outputs[..., 1].exp().mean(0) + outputs[..., 0].var(0)).sqrt()
        print(f"inside one sigma: {((test_y - mean).abs() < spread).float().mean():.3f}")


if __name__ == "__main__":
    main()
