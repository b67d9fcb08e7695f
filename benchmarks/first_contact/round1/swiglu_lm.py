"""A gated-MLP language model, trained by a small own trainer with hooks."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class GatedMLP(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)

    def forward(self, x):
        up = self.w1(x)
        return self.w2(up / (1 + torch.exp(-up)) * self.w3(x))  # flaw: hand-written-activation


class Shift(nn.Module):
    """Looks one token back, so that no attention is needed."""

    def __init__(self, dim):
        super().__init__()
        self.lin = nn.Linear(2 * dim, dim)

    def forward(self, x):
        return self.lin(torch.cat([x, F.pad(x, (0, 0, 1, 0))[:, :-1]], dim=-1))


class LM(nn.Module):
    def __init__(self, vocab, dim, depth):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(
            nn.ModuleDict({"n1": nn.RMSNorm(dim), "mix": Shift(dim), "n2": nn.RMSNorm(dim), "mlp": GatedMLP(dim, 3 * dim)})
            for _ in range(depth)
        )
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids):
        h = self.emb(ids)
        for layer in self.layers:
            h = h + layer["mix"](layer["n1"](h))
            h = h + layer["mlp"](layer["n2"](h))
        return self.out(h)


class Trainer:
    def __init__(self, model, optimizer, max_steps, hooks=()):
        self.model, self.optimizer, self.max_steps, self.hooks = model, optimizer, max_steps, list(hooks)
        self.global_step = 0

    def training_step(self, batch):
        with torch.autocast(batch.device.type, dtype=torch.bfloat16):
            logits = self.model(batch[:, :-1])
            return F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())

    def fit(self, batches):
        while self.global_step < self.max_steps:
            loss = self.training_step(batches[self.global_step % len(batches)])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.global_step += 1
            for hook in self.hooks:
                hook(self, loss)


def say(trainer, loss):
    if trainer.global_step % 150 == 0:
        print(trainer.global_step, loss.item())


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    lm = LM(4096, 1024, 5).to(device)
    Trainer(lm, torch.optim.AdamW(lm.parameters(), 2e-4, fused=True), 300, [say]).fit(
        torch.randint(4096, (16, 16, 1025), device=device)
    )
