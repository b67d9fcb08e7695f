"""Diagonal empirical Fisher information of a regression network, for elastic weight consolidation."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap

cuda = torch.cuda.is_available()
device = torch.device("cuda" if cuda else "cpu")
torch.set_float32_matmul_precision("high")


def make_net(dim, hidden, depth):
    layers = [nn.Linear(dim, hidden), nn.GELU()]
    for _ in range(depth - 1):
        layers += [nn.Linear(hidden, hidden), nn.GELU()]
    return nn.Sequential(*layers, nn.Linear(hidden, 8))


def sample_loss(params, net, x, y):
    out = functional_call(net, params, (x.unsqueeze(0),))
    return F.mse_loss(out.squeeze(0), y, reduction="sum")


def batch_fisher(net, params, xb, yb):
    """Sum over the batch of the squared gradient of every sample."""
    grads = vmap(grad(sample_loss), in_dims=(None, None, 0, 0))(params, net, xb, yb)
    return {name: g.square().sum(0) for name, g in grads.items()}


def accumulate(net, data, batch_size):
    params = {k: v.detach() for k, v in net.named_parameters()}
    total = {k: torch.zeros_like(v) for k, v in params.items()}
    x_all, y_all = data
    batches = len(x_all) // batch_size
    for b in range(batches):
        rows = slice(b * batch_size, (b + 1) * batch_size)
        part = batch_fisher(net, params, x_all[rows], y_all[rows])
        for name, value in part.items():
            total[name] += value
        if (b + 1) % 20 == 0:
            trace = sum(v.sum() for v in total.values())
            print(f"batch {b + 1}/{batches}: trace {trace.item() / ((b + 1) * batch_size):.3f}")
    return {k: v / (batches * batch_size) for k, v in total.items()}


def main():
    torch.manual_seed(0)
    dim, hidden, depth = (256, 2048, 3) if cuda else (16, 32, 2)
    batch_size, batches = (64, 80) if cuda else (8, 5)
    net = make_net(dim, hidden, depth).to(device)
    x = torch.randn(batch_size * batches, dim, device=device)
    y = torch.randn(batch_size * batches, 8, device=device)
    fisher = accumulate(net, (x, y), batch_size)
    for name, value in fisher.items():
        print(f"{name:12s} mean {value.mean().item():.3e} max {value.max().item():.3e}")


if __name__ == "__main__":
    main()
