"""Frame-level phone classifier with windowed attention (utterances of equal length)."""
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
FRAMES, MELS, PHONES = (40, 16, 12) if SMALL else (800, 80, 64)
WIDTH, HEADS, LAYERS = (32, 2, 1) if SMALL else (512, 8, 6)
BATCH, STEPS = (2, 30) if SMALL else (12, 80)


class WindowedAttention(nn.Module):
    """Each frame sees its neighbours up to a given distance."""

    def __init__(self, reach=256):
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)
        self.final = nn.Linear(WIDTH, WIDTH)
        at = torch.arange(FRAMES)
        far = (at[:, None] - at[None, :]).abs()
        self.register_buffer("allowed", torch.zeros(FRAMES, FRAMES).masked_fill(far > reach, float("-inf")))

    def split(self, x):
        b, t, _ = x.shape
        return x.view(b, t, HEADS, -1).transpose(1, 2).reshape(b * HEADS, t, -1)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        energy = torch.bmm(q, k.transpose(1, 2)) / (WIDTH // HEADS) ** 0.5  # flaw: hand-written-attention
        energy = energy + self.allowed  # flaw: hand-written-attention
        weights = F.softmax(energy, dim=2)  # flaw: hand-written-attention
        context = torch.bmm(weights.to(v.dtype), v)  # flaw: hand-written-attention
        context = context.view(b, HEADS, t, -1).transpose(1, 2).reshape(b, t, WIDTH)
        return self.final(context)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Linear(MELS, WIDTH)
        self.attn = nn.ModuleList([WindowedAttention() for _ in range(LAYERS)])
        self.ffn = nn.ModuleList(
            [nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.SiLU(), nn.Linear(4 * WIDTH, WIDTH)) for _ in range(LAYERS)]
        )
        self.norm_a = nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(LAYERS)])
        self.norm_f = nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(LAYERS)])
        self.classify = nn.Linear(WIDTH, PHONES)

    def forward(self, mel):
        x = self.front(mel)
        for attn, ffn, na, nf in zip(self.attn, self.ffn, self.norm_a, self.norm_f):
            x = x + attn(na(x))
            x = x + ffn(nf(x))
        return self.classify(x)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    mels = torch.randn(20, BATCH, FRAMES, MELS, device=device)
    phones = torch.randint(PHONES, (20, BATCH, FRAMES), device=device)
    model = Encoder().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
    total = torch.zeros((), device=device)
    for step in range(STEPS):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            scores = model(mels[step % 20])
            loss = F.cross_entropy(scores.flatten(0, 1), phones[step % 20].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    print("average", total.item() / STEPS)


if __name__ == "__main__":
    main()
