"""Click prediction with one big table of hashed categories."""
import argparse

import torch
import torch.nn as nn

ap = argparse.ArgumentParser()
ap.add_argument("--rows", type=int, default=1_500_000)
ap.add_argument("--dim", type=int, default=128)
ap.add_argument("--fields", type=int, default=16)
ap.add_argument("--batch", type=int, default=4096)
ap.add_argument("--lr", type=float, default=0.05)
args = ap.parse_args()


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(args.rows, args.dim)  # flaw: none-yet(dense-embedding-gradients)
        self.deep = nn.Sequential(nn.Linear(args.fields * args.dim, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 1))

    def forward(self, ids):
        return self.deep(self.table(ids).flatten(1)).squeeze(-1)


device = "cuda" if torch.cuda.is_available() else "cpu"
model = Ranker().to(device)
opt = torch.optim.SGD(model.parameters(), lr=args.lr)
ids = torch.randint(0, args.rows, (8, args.batch, args.fields), device=device)
click = torch.rand(8, args.batch, device=device).round()

for i in range(600):
    with torch.autocast(device, dtype=torch.bfloat16):
        score = model(ids[i % 8])
    loss = nn.functional.binary_cross_entropy_with_logits(score.float(), click[i % 8])
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if i % 100 == 0:
        print(i, loss.item())
