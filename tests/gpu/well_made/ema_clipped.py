"""Clipped gradients and a running average of the weights, both in a few kernels for all tensors."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Mixer(nn.Module):
    """An MLP-Mixer block: one product over tokens, one over channels."""

    def __init__(self, tokens, width):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.across = nn.Sequential(nn.Linear(tokens, 4 * tokens), nn.GELU(), nn.Linear(4 * tokens, tokens))
        self.within = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.across(self.norms[0](x).mT).mT
        return x + self.within(self.norms[1](x))


class Series(Dataset):
    def __init__(self, tokens, features):
        self.series = torch.randn(2048, tokens, features, dtype=torch.bfloat16)

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        return self.series[index % 2048], self.series[index % 2048, 0, :8].float()


class Average:
    """Exponential moving average of a model's parameters."""

    def __init__(self, model, decay):
        self.model, self.decay = copy.deepcopy(model).requires_grad_(False), decay
        self.mine, self.theirs = list(self.model.parameters()), list(model.parameters())

    @torch.no_grad()
    def update(self):
        torch._foreach_lerp_(self.mine, self.theirs, 1 - self.decay)


tokens, features, width, device = 256, 128, 1024, "cuda"
mixers = [Mixer(tokens, width) for _ in range(3)]
net = nn.Sequential(nn.Linear(features, width), *mixers, nn.LayerNorm(width), nn.Linear(width, 8))
net.to(device)
average = Average(net, 0.999)
compiled = torch.compile(net)
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-4, weight_decay=0.05, fused=True)
loader = DataLoader(
    Series(tokens, features), batch_size=128, num_workers=8, pin_memory=True, persistent_workers=True
)
norms = []
for series, target in loader:
    series, target = series.to(device, non_blocking=True), target.to(device, non_blocking=True)
    with torch.autocast(device, dtype=torch.bfloat16):
        predicted = compiled(series).mean(1)
    loss = torch.nn.functional.mse_loss(predicted.float(), target)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    norms.append(torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0, foreach=True))
    optimizer.step()
    average.update()
    if len(norms) == 500:
        print("mean gradient norm", torch.stack(norms).mean().item())
        norms.clear()
