"""A recurrent language model with cuDNN's LSTM in bfloat16."""
import torch
from torch import nn


class RNN(nn.Module):
    def __init__(self, vocab=8192, dim=1024):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.LSTM(dim, dim, num_layers=2, batch_first=True)
        self.top = nn.Linear(dim, vocab)

    def forward(self, ids):
        h, _ = self.rnn(self.emb(ids))
        return self.top(h)


class Trainer:
    def __init__(self):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.net = RNN().to(self.device, torch.bfloat16)
        self.opt = torch.optim.AdamW(self.net.parameters(), 1e-3, fused=True)

    def fit(self, ids, steps):
        for s in range(steps):
            row = ids[s % len(ids)]
            loss = nn.functional.cross_entropy(self.net(row[:, :-1]).flatten(0, 1), row[:, 1:].flatten())
            self.opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
            self.opt.step()


t = Trainer()
t.fit(torch.randint(8192, (8, 128, 129), device=t.device), 320)
