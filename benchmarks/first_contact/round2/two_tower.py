"""Two-tower retrieval with in-batch negatives."""
import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
BATCH = 12288


def tower(n_in, width, n_out):
    return nn.Sequential(
        nn.Linear(n_in, width), nn.ReLU(inplace=True),
        nn.Linear(width, width), nn.ReLU(inplace=True),
        nn.Linear(width, n_out))


class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.user = tower(512, 2048, 512)
        self.item = tower(512, 2048, 512)
        self.scale = nn.Parameter(torch.tensor(10.0))

    def forward(self, u, i):
        return F.normalize(self.user(u), dim=-1), F.normalize(self.item(i), dim=-1)

    def similarity(self, u, i):
        with torch.autocast(device, enabled=False):  # flaw: fp32-matmul
            return self.scale * (u.float() @ i.float().t())  # flaw: fp32-matmul


def main():
    model = TwoTower().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    users = torch.randn(4 * BATCH, 512, device=device, dtype=torch.bfloat16)
    items = torch.randn(4 * BATCH, 512, device=device, dtype=torch.bfloat16)
    gold = torch.arange(BATCH, device=device)
    for step in range(400):
        s = (step % 4) * BATCH
        with torch.autocast(device, dtype=torch.bfloat16):
            u, i = model(users[s:s + BATCH], items[s:s + BATCH])
            scores = model.similarity(u, i)
            loss = F.cross_entropy(scores, gold)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if (step + 1) % 100 == 0:
            print(step + 1, loss.item())


if __name__ == "__main__":
    main()
