"""Train an ensemble of probabilistic dynamics models (as in PETS and MBPO)."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

cuda = torch.cuda.is_available()
device = torch.device("cuda" if cuda else "cpu")

OBS, ACT = (64, 16) if cuda else (6, 2)
HIDDEN = 1024 if cuda else 32
MEMBERS = 16 if cuda else 3
BATCH = 4096 if cuda else 32
TRANSITIONS = 200_000 if cuda else 500
UPDATES = 300 if cuda else 8


class EnsembleLinear(nn.Module):
    """One linear layer per member, the weights in one tensor."""

    def __init__(self, members, n_in, n_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(members, n_in, n_out) / math.sqrt(n_in))
        self.bias = nn.Parameter(torch.zeros(members, n_out))

    def forward(self, x):
        return torch.baddbmm(self.bias[:, None], x, self.weight)


class DynamicsEnsemble(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            [
                EnsembleLinear(MEMBERS, OBS + ACT, HIDDEN),
                EnsembleLinear(MEMBERS, HIDDEN, HIDDEN),
                EnsembleLinear(MEMBERS, HIDDEN, HIDDEN),
            ]
        )
        self.head = EnsembleLinear(MEMBERS, HIDDEN, 2 * (OBS + 1) + 6)

    def forward(self, x):
        for layer in self.layers:
            x = F.silu(layer(x))
        mean, raw, _ = self.head(x).split([OBS + 1, OBS + 1, 6], dim=-1)
        logvar = raw.clamp(-10.0, 2.0)
        return mean, logvar


def make_transitions():
    obs = torch.randn(TRANSITIONS, OBS, device=device)
    act = torch.rand(TRANSITIONS, ACT, device=device) * 2 - 1
    drift = torch.randn(OBS + ACT, OBS, device=device) * 0.05
    delta = torch.tanh(torch.cat([obs, act], 1) @ drift)
    reward = -(obs**2).mean(1, keepdim=True)
    return torch.cat([obs, act], 1), torch.cat([delta, reward], 1)


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    inputs, targets = make_transitions()
    model = DynamicsEnsemble().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4, fused=True)

    for update in range(UPDATES):
        # each member has its own bootstrap sample
        index = torch.randint(TRANSITIONS, (MEMBERS, BATCH), device=device)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            mean, logvar = model(inputs[index])
        logvar = logvar.float()
        error = F.mse_loss(mean.float(), targets[index], reduction="none")
        loss = 0.5 * (error * torch.exp(-logvar) + logvar).mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if update % 50 == 0:
            print(f"update {update} nll {loss.item():.3f}")
    print(f"done, nll {loss.item():.3f}")


if __name__ == "__main__":
    main()
