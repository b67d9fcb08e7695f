"""Residue contacts from sequence embeddings; a small Trainer with callbacks."""
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
LENGTH, BATCH, STEPS = (24, 2, 6) if TINY else (160, 24, 110)


class ContactHead(nn.Module):
    def __init__(self, d_in=64, d=128):
        super().__init__()
        self.mix = nn.Sequential(nn.Conv1d(d_in, d, 5, padding=2), nn.GELU(), nn.Conv1d(d, d, 5, padding=2))
        self.left = nn.Linear(d, d)
        self.right = nn.Linear(d, d)

    def forward(self, residues):
        h = self.mix(residues).transpose(1, 2)
        return self.left(h) @ self.right(h).transpose(1, 2) * 0.1


class Callback:
    def after_loss(self, logits, contacts, loss):
        pass

    def finish(self):
        pass


class SoftF1(Callback):
    """Average of the soft F1 score over the run."""

    def __init__(self):
        self.total = 0.0
        self.seen = 0

    def after_loss(self, logits, contacts, loss):
        p = logits.sigmoid()
        both = (p * contacts).sum(dim=(1, 2))
        f1 = 2 * both / (p.square().sum(dim=(1, 2)) + contacts.sum(dim=(1, 2)))
        self.total += f1.detach().mean()
        self.seen += 1

    def finish(self):
        print(f"soft F1  {self.total.item() / self.seen:.5f}")


class LastLoss(Callback):
    def after_loss(self, logits, contacts, loss):
        self.loss = loss.detach()

    def finish(self):
        print(f"bce      {self.loss.item():.5f}")


class Trainer:
    def __init__(self, model, callbacks):
        self.model, self.callbacks = model, callbacks
        self.opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def fit(self, batches):
        for residues, contacts in batches:
            logits = self.model(residues)
            loss = F.binary_cross_entropy_with_logits(logits, contacts)
            for cb in self.callbacks:
                cb.after_loss(logits, contacts, loss)
            self.opt.zero_grad(set_to_none=True)
            loss.backward()
            self.opt.step()
        for cb in self.callbacks:
            cb.finish()


def chains():
    g = torch.Generator().manual_seed(9)
    for _ in range(STEPS):
        residues = torch.randn(BATCH, 64, LENGTH, generator=g)
        angle = residues[:, :8].mean(1).cumsum(-1)
        yield residues, ((angle[:, :, None] - angle[:, None, :]).abs() < 0.5).float()


if __name__ == "__main__":
    torch.manual_seed(0)
    Trainer(ContactHead(), [SoftF1(), LastLoss()]).fit(chains())
