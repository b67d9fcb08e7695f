"""Masked patch prediction in fp16 with a gradient scaler."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def make_layers(d, heads, n):
    return nn.ModuleList(
        nn.TransformerEncoderLayer(d, heads, 4 * d, dropout=0.0, activation="gelu", batch_first=True, norm_first=True) for _ in range(n))


class MaskedPatches(nn.Module):
    def __init__(self, patch=768, d=768, heads=12, n=4):
        super().__init__()
        self.inp, self.out = nn.Linear(patch, d), nn.Linear(d, patch)
        self.mask = nn.Parameter(torch.zeros(d))
        self.layers = make_layers(d, heads, n)

    def forward(self, x, hidden):
        h = torch.where(hidden.unsqueeze(-1), self.mask, self.inp(x))
        for layer in self.layers:
            h = layer(h)
        return self.out(h)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    half = torch.float16 if device == "cuda" else torch.bfloat16
    model = MaskedPatches().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1.5e-4, betas=(0.9, 0.95), fused=True)
    scaler = torch.amp.GradScaler(device, enabled=device == "cuda")
    batch = 96
    patches = torch.randn(2, batch, 196, 768, device=device, dtype=half)
    for step in range(400):
        x = patches[step % 2]
        hidden = torch.rand(batch, 196, device=device) < 0.6
        with torch.autocast(device, dtype=half):
            guess = model(x, hidden)
        loss = F.mse_loss(guess.float(), x.float())
        opt.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        if step % 100 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
