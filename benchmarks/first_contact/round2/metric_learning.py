import torch
import torch.nn as nn
import torch.nn.functional as F

dev = "cuda" if torch.cuda.is_available() else "cpu"


class Bank:
    """All embeddings of the last sweep, used as a reference set."""

    def __init__(self, model, pool, chunk):
        self.model, self.pool, self.chunk = model, pool, chunk

    @torch.no_grad()
    def refresh(self):
        bank = torch.empty(0, 256, device=dev, dtype=torch.bfloat16)
        for start in range(0, len(self.pool), self.chunk):
            with torch.autocast(dev, dtype=torch.bfloat16):
                z = F.normalize(self.model(self.pool[start:start + self.chunk]), dim=-1)
            bank = torch.cat((bank, z.to(bank.dtype)))  # flaw: cat-in-loop
        return bank


def main():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(256, 2048), nn.ReLU(), nn.Linear(2048, 256)).to(dev)
    opt = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9, fused=True)
    pool = torch.randn(393_216, 256, device=dev, dtype=torch.bfloat16)
    bank_of = Bank(net, pool, 8192)
    for step in range(400):
        bank = bank_of.refresh()
        pick = torch.randint(0, len(pool), (1024,), device=dev)
        with torch.autocast(dev, dtype=torch.bfloat16):
            z = F.normalize(net(pool[pick]), dim=-1).bfloat16()
            loss = F.cross_entropy(z @ bank[:8192].t() / 0.1, pick % 8192)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 50 == 0:
            print(step, loss.item())


main()
