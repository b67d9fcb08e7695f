"""Translation with a prefix language model: source tokens, then target tokens; label-smoothed loss."""
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

ON_GPU = torch.cuda.is_available()
VOCAB = 32_000 if ON_GPU else 48
DIM = 512 if ON_GPU else 32
LAYERS = 6 if ON_GPU else 1
SENTENCES = 96 if ON_GPU else 3
SRC, TGT = (128, 96) if ON_GPU else (8, 6)
STEPS = int(os.environ.get("STEPS", 130 if ON_GPU else 4))
SMOOTHING = 0.1


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.heads = max(1, dim // 64)
        self.norm_a, self.norm_f = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.fc1, self.fc2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm_a(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        h = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(h.transpose(1, 2).reshape(b, n, d))
        return x + self.fc2(F.relu(self.fc1(self.norm_f(x))))


class PrefixTranslator(nn.Module):
    """Returns scores for the target positions only."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.position = nn.Parameter(torch.zeros(SRC + TGT, DIM))
        self.layers = nn.ModuleList(Layer(DIM) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(DIM)
        nn.init.normal_(self.embed.weight, std=0.02)
        nn.init.normal_(self.position, std=0.02)

    def forward(self, source, target):
        x = self.embed(torch.cat([source, target], dim=1)) + self.position
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x[:, source.shape[1]:])
        return F.linear(x, self.embed.weight)


class SmoothedLoss(nn.Module):
    """Cross entropy against (1 - eps) * one-hot + eps * uniform."""

    def __init__(self, eps):
        super().__init__()
        self.eps = eps

    def forward(self, scores, target):
        scores, target = scores.flatten(0, 1), target.flatten()
        return F.cross_entropy(scores, target, label_smoothing=self.eps)


class WarmupThenDecay:
    def __init__(self, optimizer, peak, warmup):
        self.optimizer, self.peak, self.warmup, self.count = optimizer, peak, warmup, 0

    def step(self):
        self.count += 1
        factor = min(self.count / self.warmup, (self.warmup / self.count) ** 0.5)
        for group in self.optimizer.param_groups:
            group["lr"] = self.peak * factor


def sentence_pairs(device):
    """The 'translation' reverses the source and shifts its ids."""
    gen = torch.Generator(device).manual_seed(9)
    while True:
        source = torch.randint(VOCAB // 4, (SENTENCES, SRC), device=device, generator=gen)
        target = (source.flip(1)[:, :TGT + 1] + VOCAB // 2) % VOCAB
        yield source, target[:, :-1], target[:, 1:]


def main():
    device = torch.device("cuda" if ON_GPU else "cpu")
    torch.manual_seed(0)
    model = PrefixTranslator().to(device)
    if ON_GPU:
        for layer in model.layers:
            layer.compile()
    criterion = SmoothedLoss(SMOOTHING)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, betas=(0.9, 0.98), fused=True)
    schedule = WarmupThenDecay(optimizer, 5e-4, 40)
    total = torch.zeros((), device=device)
    pairs = sentence_pairs(device)
    for step in range(STEPS):
        source, shifted, target = next(pairs)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = criterion(model(source, shifted), target)
        optimizer.zero_grad()
        loss.backward()
        schedule.step()
        optimizer.step()
        total += loss.detach()
    print(f"{STEPS} steps, mean loss {total.item() / STEPS:.4f}, last loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
