"""A transformer that computes its blocks again in the backward pass."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Body(nn.Module):
    def __init__(self, dim=1024, depth=5, save=True):
        super().__init__()
        self.save = save
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, 16, 4 * dim, 0.0, "gelu", batch_first=True, norm_first=True) for _ in range(depth)
        )

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.save else block(x)  # flaw: none-yet(checkpointing)
        return x


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    body, top = Body().to(device), nn.Linear(1024, 100).to(device)
    opt = torch.optim.AdamW([*body.parameters(), *top.parameters()], 1e-4, fused=True)
    x, y = torch.randn(16, 512, 1024, device=device), torch.randint(100, (16,), device=device)
    for _ in range(320):
        with torch.autocast(device, torch.bfloat16):
            loss = nn.functional.cross_entropy(top(body(x)[:, 0]), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


main()
