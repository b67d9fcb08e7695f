"""Predicts masked frame features of a video from the others."""
import os
import torch
from torch import nn
import torch.nn.functional as F


class Predictor(nn.Module):
    def __init__(self, dim, heads, depth, frames):
        super().__init__()
        layer = nn.TransformerEncoderLayer(dim, heads, 4 * dim, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.blank = nn.Parameter(torch.zeros(dim))
        self.time = nn.Parameter(torch.randn(1, frames, dim) * 0.02)

    def forward(self, x, hidden):
        x = torch.where(hidden.unsqueeze(-1), self.blank.to(x.dtype), x)
        return self.encoder(x + self.time)


def masked_error(guess, truth, hidden):
    error = F.mse_loss(guess, truth, reduction="none").mean(-1)
    return (error * hidden).sum() / hidden.sum()


def main():
    small = os.environ.get("SMALL") == "1"
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dim, heads, depth, frames, batch, steps = (16, 2, 1, 8, 2, 30) if small else (768, 12, 6, 256, 64, 70)
    net = Predictor(dim, heads, depth, frames).to(device)
    opt = torch.optim.AdamW(net.parameters(), 2e-4, fused=True)
    videos = torch.randn(batch * 2, frames, dim, device=device)
    for step in range(steps):
        x = videos[step % 2 * batch :][:batch]
        hidden = torch.rand(batch, frames, device=device) < 0.4
        with torch.autocast(device, dtype=torch.bfloat16):
            guess = net(x, hidden)
        loss = masked_error(guess.float(), x, hidden)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print("masked error", loss.item())


if __name__ == "__main__":
    main()
