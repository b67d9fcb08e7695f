"""A transformer classifier with a careful training loop that writes a log."""
import io

import torch
from torch import nn


def build(dim, layers):
    layer = nn.TransformerEncoderLayer(dim, 8, 4 * dim, 0.0, "gelu", batch_first=True, norm_first=True)
    return nn.ModuleDict({"enc": nn.TransformerEncoder(layer, layers, enable_nested_tensor=False), "top": nn.Linear(dim, 20)})


def run(dim=512, layers=10, batch=16, length=192, steps=400):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = build(dim, layers).to(device)
    opt = torch.optim.AdamW(net.parameters(), 1e-4, fused=True)
    x, y = torch.randn(8, batch, length, dim, device=device), torch.randint(20, (8, batch), device=device)
    log = io.StringIO()
    skipped = 0
    for s in range(steps):
        opt.zero_grad()
        with torch.autocast(device, torch.bfloat16):
            loss = nn.functional.cross_entropy(net["top"](net["enc"](x[s % 8]).mean(1)), y[s % 8])
        if not torch.isfinite(loss):  # flaw: sync-in-step
            skipped += 1
            continue
        loss.backward()
        opt.step()
        if s % 100 == 99:
            log.write(f"{s} {loss.item():.4f}\n")
    print(log.getvalue(), skipped)


if __name__ == "__main__":
    run()
