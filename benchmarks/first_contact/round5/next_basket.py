"""Session-based next-item prediction over a full catalogue."""
import argparse
import logging
import os

import torch
from torch import nn, optim

log = logging.getLogger("next_basket")


class SessionModel(nn.Module):
    def __init__(self, features, hidden, items, device):
        super().__init__()
        self.gru = nn.GRU(features, hidden, batch_first=True, device=device)
        self.norm = nn.LayerNorm(hidden, device=device)
        self.catalogue = nn.Linear(hidden, items, bias=False, device=device)

    def forward(self, events):
        _, last = self.gru(events)
        return self.catalogue(self.norm(last[-1]))


class Runner:
    def __init__(self, args):
        self.args = args
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.manual_seed(args.seed)
        self.model = SessionModel(args.features, args.hidden, args.items, self.device)
        self.optimizer = optim.Adam(self.model.parameters(), lr=args.lr, fused=True)
        self.criterion = nn.CrossEntropyLoss()
        self.sessions = torch.randn(4, args.batch, args.clicks, args.features, device=self.device)
        self.bought = torch.randint(args.items, (4, args.batch), device=self.device)

    def one_update(self, n):
        self.model.zero_grad(set_to_none=False)  # flaw: zeroed-gradients
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            scores = self.model(self.sessions[n % 4])
            loss = self.criterion(scores, self.bought[n % 4])
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run(self):
        for n in range(self.args.updates):
            loss = self.one_update(n)
            if n % self.args.log_every == 0:
                log.info("update %d loss %.3f", n, loss.item())


def parse():
    tiny = os.environ.get("SMALL") == "1"
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--items", type=int, default=200 if tiny else 400_000)
    p.add_argument("--hidden", type=int, default=16 if tiny else 512)
    p.add_argument("--features", type=int, default=8 if tiny else 64)
    p.add_argument("--clicks", type=int, default=4 if tiny else 12)
    p.add_argument("--batch", type=int, default=4 if tiny else 256)
    p.add_argument("--updates", type=int, default=30 if tiny else 150)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--log-every", type=int, default=50)
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    Runner(parse()).run()
