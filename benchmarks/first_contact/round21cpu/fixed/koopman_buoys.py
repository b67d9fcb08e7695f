"""Deep Koopman model of drifting buoys: encode a snapshot, advance linearly in the latent space, decode the path."""
import math
from functools import partial

import torch
from torch import nn

SEED, SENSORS, LATENT, HORIZON = 7, 64, 64, 80
BATCH, STEPS, EVERY = 160, 540, 60


def simulate(paths, length, generator):
    """Damped coupled oscillators, seen through a random tanh read-out."""
    modes = 16
    omega = torch.rand(modes, generator=generator) * 0.6 + 0.1
    decay = torch.rand(modes, generator=generator) * 0.02
    phase = torch.rand(paths, modes, generator=generator) * 2 * math.pi
    size = torch.rand(paths, modes, generator=generator) + 0.2
    t = torch.arange(length)[None, :, None]
    waves = size[:, None] * torch.exp(-decay * t) * torch.cos(omega * t + phase[:, None])
    readout = torch.randn(modes, SENSORS, generator=generator) / math.sqrt(modes)
    return torch.tanh(waves @ readout)


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


class Koopman(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = mlp(SENSORS, 128, LATENT)
        self.decode = mlp(LATENT, 64, SENSORS)
        self.advance = nn.Linear(LATENT, LATENT, bias=False)
        nn.init.orthogonal_(self.advance.weight)

    def latent_path(self, first, horizon):
        z = self.encode(first)
        path = [z]
        for _ in range(horizon - 1):
            z = self.advance(z)
            path.append(z)
        return torch.stack(path, dim=1)

    def forward(self, first, horizon):
        return self.decode(self.latent_path(first, horizon))


def windows(data, generator, batch=BATCH, length=HORIZON):
    every = data.unfold(1, length, 1)
    while True:
        who = torch.randint(data.shape[0], (batch,), generator=generator)
        when = torch.randint(every.shape[1], (batch,), generator=generator)
        yield every[who, when].transpose(1, 2)


def one_update(model, optimizer, batch):
    guess = model(batch[:, 0], HORIZON)
    loss = nn.functional.mse_loss(guess, batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def main():
    torch.manual_seed(SEED)
    g = torch.Generator().manual_seed(SEED)
    data = simulate(200, 160, g)
    model = Koopman()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    update = partial(one_update, model, optimizer)
    total = torch.zeros(())
    for step, batch in zip(range(1, STEPS + 1), windows(data, g)):
        total += update(batch)
        if step % EVERY == 0:
            print(f"update {step} | rollout mse {total.item() / EVERY:.6f}")
            total.zero_()


if __name__ == "__main__":
    main()
