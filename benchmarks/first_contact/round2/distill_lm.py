import torch
import torch.nn as nn
import torch.nn.functional as F


class Losses:
    @staticmethod
    def smoothed(logits, target, eps=0.1):
        n = logits.shape[-1]
        with torch.no_grad():
            dist = torch.full_like(logits, eps / (n - 1))  # flaw: hand-written-loss
            dist.scatter_(1, target[:, None], 1.0 - eps)  # flaw: hand-written-loss
        logp = torch.log(torch.softmax(logits, dim=1) + 1e-9)  # flaw: hand-written-loss
        return -(dist * logp).sum(dim=1).mean()  # flaw: hand-written-loss


class TextCNN(nn.Module):
    def __init__(self, vocab, dim, out):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.mix = nn.ModuleList([nn.Sequential(nn.LayerNorm(2 * dim), nn.Linear(2 * dim, dim), nn.GELU()) for _ in range(4)])
        self.out = nn.Linear(dim, out)

    def forward(self, ids):
        x = self.emb(ids)
        for m in self.mix:
            x = x + m(torch.cat([x, x.roll(1, 1)], -1))
        return self.out(x)


class Run:
    vocab, dim, batch, seq = 8192, 768, 32, 256

    def __init__(self):
        self.dev = "cuda" if torch.cuda.is_available() else "cpu"
        self.net = TextCNN(self.vocab, self.dim, self.vocab).to(self.dev)
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=5e-4, fused=True)
        self.text = torch.randint(0, self.vocab, (1024, self.seq + 1), device=self.dev)

    def step(self):
        rows = self.text[torch.randint(0, 1024, (self.batch,), device=self.dev)]
        with torch.autocast(self.dev, dtype=torch.bfloat16):
            logits = self.net(rows[:, :-1])
        loss = Losses.smoothed(logits.float().flatten(0, 1), rows[:, 1:].flatten())
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        return loss.detach()


if __name__ == "__main__":
    run = Run()
    for i in range(400):
        loss = run.step()
        if i % 100 == 0:
            print(i, loss.item())
