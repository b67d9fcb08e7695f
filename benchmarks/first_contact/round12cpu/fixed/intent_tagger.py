"""Intent classification of chat messages with a small transformer encoder."""
import random

import torch
from torch import nn

CONFIG = {"vocab": 4000, "dim": 48, "heads": 4, "layers": 1, "max_len": 96, "batch": 8, "steps": 240}
PAD = 0


def synthetic_messages(n, rng):
    rows = []
    for _ in range(n):
        length = min(CONFIG["max_len"], max(3, int(rng.lognormvariate(2.6, 0.5))))
        intent = rng.randrange(12)
        toks = [1 + intent * 300 + rng.randrange(300) for _ in range(length)]
        rows.append((toks, intent))
    return rows


def collate(rows):
    """Token ids and labels of a batch."""
    width = max(len(toks) for toks, _ in rows)
    ids = torch.full((len(rows), width), PAD)
    for r, (toks, _) in enumerate(rows):
        ids[r, : len(toks)] = torch.tensor(toks)
    return ids, torch.tensor([label for _, label in rows])


class IntentModel(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.tok = nn.Embedding(c["vocab"], c["dim"], padding_idx=PAD)
        self.pos = nn.Parameter(torch.zeros(c["max_len"], c["dim"]))
        layer = nn.TransformerEncoderLayer(c["dim"], c["heads"], 4 * c["dim"], dropout=0.0, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, c["layers"], enable_nested_tensor=False)
        self.head = nn.Linear(c["dim"], 12)

    def forward(self, ids):
        pad = ids.eq(PAD)
        h = self.enc(self.tok(ids) + self.pos[: ids.shape[1]], src_key_padding_mask=pad)
        keep = (~pad).unsqueeze(-1)
        return self.head((h * keep).sum(1) / keep.sum(1))


def train():
    torch.set_num_threads(1)
    rng = random.Random(0)
    torch.manual_seed(0)
    rows = synthetic_messages(3000, rng)
    rows.sort(key=lambda r: len(r[0]))
    chunks = [rows[i:i + CONFIG["batch"]] for i in range(0, len(rows), CONFIG["batch"])]
    rng.shuffle(chunks)
    model = IntentModel(CONFIG)
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
    for step in range(CONFIG["steps"]):
        ids, intent = collate(chunks[step % len(chunks)])
        loss = nn.functional.cross_entropy(model(ids), intent)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 80 == 79:
            print("step", step + 1, "loss", round(loss.item(), 4))


train()
