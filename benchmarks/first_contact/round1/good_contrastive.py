"""Learns to match pictures with texts (contrastive), with big batches."""
import torch
import torch.nn.functional as F
from torch import nn


def tower(inputs, width, out):
    return nn.Sequential(nn.Linear(inputs, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, out))


class Clip(nn.Module):
    def __init__(self):
        super().__init__()
        self.image, self.text = tower(2048, 4096, 512), tower(1024, 4096, 512)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, image, text):
        i, t = F.normalize(self.image(image), dim=-1), F.normalize(self.text(text), dim=-1)
        return self.scale.exp() * i @ t.T


def train(steps=320, batch=8192):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    clip = Clip().to(device)
    opt = torch.optim.AdamW(clip.parameters(), 1e-4, fused=True)
    image, text = torch.randn(batch, 2048, device=device), torch.randn(batch, 1024, device=device)
    same = torch.arange(batch, device=device)
    for _ in range(steps):
        with torch.autocast(device, torch.bfloat16):
            loss = F.cross_entropy(clip(image, text), same)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


print(train())
