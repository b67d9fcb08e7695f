"""Samples melodies from a small decoder-only transformer (untrained weights, greedy with temperature)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
NOTES, DIM, HEADS, DEPTH, SPAN = 130, 192, 6, 4, 288
pieces = 10


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.out = nn.Linear(DIM, DIM)
        self.ff = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x, past=None):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        if past is not None:
            buf_k, buf_v, start = past
            buf_k[:, :, start:start + t], buf_v[:, :, start:start + t] = k, v
            k, v = buf_k[:, :, :start + t], buf_v[:, :, :start + t]
        a = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, DIM))
        return x + self.ff(self.n2(x))


class MelodyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.note = nn.Embedding(NOTES, DIM)
        self.place = nn.Embedding(SPAN, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, NOTES)

    def new_cache(self, batch):
        shape = (batch, HEADS, SPAN, DIM // HEADS)
        return [(torch.zeros(shape), torch.zeros(shape)) for _ in self.blocks]

    def forward(self, notes, cache=None, start=0):
        x = self.note(notes) + self.place.weight[start:start + notes.shape[1]]
        for i, block in enumerate(self.blocks):
            x = block(x, None if cache is None else (*cache[i], start))
        return self.head(self.norm(x[:, -1]))


@torch.inference_mode()
def compose(model, motif, length):
    seq = torch.zeros(motif.shape[0], length, dtype=torch.long)
    seq[:, : motif.shape[1]] = motif
    for t in range(motif.shape[1], length):  # flaw: generation-without-cache
        logits = model(seq[:, :t])  # flaw: generation-without-cache
        seq[:, t] = (logits / 0.8).argmax(-1)
    return seq


torch.manual_seed(21)
model = MelodyModel().eval()
for p in range(pieces):
    motif = torch.randint(0, NOTES, (2, 16), generator=torch.Generator().manual_seed(p))
    melody = compose(model, motif, 96)
    print(f"piece {p}: ends on {melody[:, -4:].tolist()}, {melody[0].unique().numel()} different notes")
