"""Click prediction on hashed features; everything comes from one settings dict."""
import math
import random

import torch
import torch.nn as nn
import torch.utils.data as tud

settings = {
    "data": {
        "batch_size": 512,
        "num_workers": 0,  # flaw: loader-without-workers
        "pin_memory": True,
        "shuffle": True,
    },
    "model": {"buckets": 50_000, "dim": 256, "fields": 24},
    "epochs": 1,
}


class Clicks(tud.Dataset):
    def __init__(self, rows, fields, buckets):
        self.rows, self.fields, self.buckets = rows, fields, buckets

    def __len__(self):
        return self.rows

    def __getitem__(self, row):
        gen = random.Random(row)
        hashed = [gen.randrange(self.buckets) for _ in range(self.fields)]
        age = gen.random() * 100
        dense = [math.log1p(age), math.sin(age / 7), math.cos(age / 7), age / 100, math.tanh(age / 50), age**0.5, gen.random(), 1.0]
        return torch.tensor(hashed), torch.tensor(dense), float(gen.random() < 0.1)


class Ranker(nn.Module):
    def __init__(self, buckets, dim, fields):
        super().__init__()
        self.table = nn.Embedding(buckets, dim)
        wide = dim * fields + 8
        self.deep = nn.Sequential(nn.Linear(wide, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 1))

    def forward(self, hashed, dense):
        return self.deep(torch.cat([self.table(hashed).flatten(1), dense], 1)).squeeze(1)


def run(cfg):
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    m = cfg["model"]
    net = Ranker(m["buckets"], m["dim"], m["fields"]).to(dev)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    loader = tud.DataLoader(Clicks(200_000, m["fields"], m["buckets"]), **cfg["data"])  # flaw: loader-without-workers
    for _ in range(cfg["epochs"]):
        for hashed, dense, clicked in loader:
            hashed, dense, clicked = (t.to(dev, non_blocking=True) for t in (hashed, dense, clicked))
            with torch.autocast(dev.type, torch.bfloat16):
                logit = net(hashed, dense)
            loss = nn.functional.binary_cross_entropy_with_logits(logit.float(), clicked.float())
            opt.zero_grad()
            loss.backward()
            opt.step()


if __name__ == "__main__":
    run(settings)
