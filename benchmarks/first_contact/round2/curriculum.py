"""Language model with statistics for a dashboard."""
import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"


class Meter:
    def __init__(self):
        self.sum, self.n = 0.0, 0

    def update(self, value):
        self.sum = self.sum + value  # flaw: graph-kept-alive
        self.n += 1

    def average(self):
        return float(self.sum / max(self.n, 1))


class Model(nn.Module):
    def __init__(self, vocab=512, d=768, n=4):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.mix = nn.ModuleList(nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 3 * d), nn.GELU(), nn.Linear(3 * d, d)) for _ in range(n))
        self.head = nn.Linear(d, vocab)

    def forward(self, x):
        h = self.emb(x)
        for m in self.mix:
            h = h + m(h)
        return self.head(h)


def entropy(logits):
    p = torch.softmax(logits.float(), -1)
    return torch.special.entr(p).sum(-1).mean()


def main(batch=16, seq=256):
    model = Model().to(device)
    opt = torch.optim.AdamW(model.parameters(), 3e-4, fused=True)
    data = torch.randint(0, 512, (512, seq + 1), device=device)
    spread = Meter()
    for step in range(400):
        rows = data[torch.randint(0, 512, (batch,), device=device)]
        with torch.autocast(device, dtype=torch.bfloat16):
            logits = model(rows[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        spread.update(entropy(logits[:, -64:]))  # flaw: graph-kept-alive
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 200 == 199:
            print(step, loss.item(), spread.average())


if __name__ == "__main__":
    main()
