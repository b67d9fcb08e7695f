"""MAML on sine regression with torch.func: all tasks of a batch in one vmap."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap

TASKS, SHOTS, INNER_LR = 64, 20, 0.05

net = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))


def loss_fn(params, x, y):
    return F.mse_loss(functional_call(net, params, (x,)), y)


def adapt(params, x, y):
    gradient = grad(loss_fn)(params, x, y)
    return {name: p - INNER_LR * gradient[name] for name, p in params.items()}


def task_loss(params, x, y, x_query, y_query):
    return loss_fn(adapt(params, x, y), x_query, y_query)


def sample_tasks():
    amplitude = torch.rand(TASKS, 1, 1) * 4.9 + 0.1
    phase = torch.rand(TASKS, 1, 1) * torch.pi
    x = torch.rand(TASKS, 2 * SHOTS, 1) * 10 - 5
    y = amplitude * torch.sin(x + phase)
    return x[:, :SHOTS], y[:, :SHOTS], x[:, SHOTS:], y[:, SHOTS:]


def main():
    torch.manual_seed(0)
    params = dict(net.named_parameters())
    batched = vmap(task_loss, in_dims=(None, 0, 0, 0, 0))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    running = torch.zeros(())
    for step in range(1, 701):
        loss = batched(params, *sample_tasks()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.detach()
        if step % 100 == 0:
            print(f"step {step} query loss {running.item() / 100:.4f}")
            running.zero_()


if __name__ == "__main__":
    main()
