import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
VOCAB = 100_352
DIM, LAYERS, SEQ = 512, 4, 512


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(DIM)
        self.inp, self.out = nn.Linear(DIM, 4 * DIM, bias=False), nn.Linear(2 * DIM, DIM, bias=False)

    def forward(self, x):
        return x + self.out(F.glu(self.inp(self.norm(x)), dim=-1))


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.layers = nn.Sequential(*[Gated() for _ in range(LAYERS)])
        self.norm = nn.RMSNorm(DIM)
        self.head = nn.Linear(DIM, VOCAB, bias=False)
        self.head.weight = self.tok.weight
        nn.init.normal_(self.tok.weight, std=0.02)

    def forward(self, ids, labels):
        h = self.norm(self.layers(self.tok(ids)))
        logits = self.head(h)  # flaw: none-yet(chunked-loss)
        return F.cross_entropy(logits.view(-1, VOCAB), labels.reshape(-1))  # flaw: none-yet(chunked-loss)


def main():
    model = LM().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1, fused=True)
    batch = 6
    ids = torch.randint(0, VOCAB, (256, SEQ + 1), device=device)
    for step in range(400):
        rows = ids[torch.randint(0, len(ids), (batch,), device=device)]
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = model(rows[:, :-1], rows[:, 1:])
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        if step % 100 == 0:
            print(step, loss.item())


main()
