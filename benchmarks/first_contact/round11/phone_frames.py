"""Frame-wise phone recognition from log-mel features (transformer with gated feed-forward parts)."""
import torch
from torch import nn
import torch.nn.functional as F

GPU = torch.cuda.is_available()


class Gated(nn.Module):
    """Pre-norm SwiGLU."""

    def __init__(self, dim, inner):
        super().__init__()
        self.norm = nn.RMSNorm(dim)
        self.both, self.back = nn.Linear(dim, 2 * inner, bias=False), nn.Linear(inner, dim, bias=False)

    def forward(self, x):
        gate, value = self.both(self.norm(x)).chunk(2, dim=-1)
        return x + self.back(F.silu(gate) * value)


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm, self.heads = nn.RMSNorm(dim), heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(y.transpose(1, 2).reshape(b, n, d))


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.attention, self.feed = SelfAttention(dim, heads), Gated(dim, 3 * dim)

    def forward(self, x):
        return self.feed(self.attention(x))


class PhoneNet(nn.Module):
    def __init__(self, mels, stack, frames, dim, layers, phones):
        super().__init__()
        self.stack = stack
        self.enter = nn.Linear(mels * stack, dim)
        self.place = nn.Parameter(0.02 * torch.randn(frames // stack, dim))
        self.layers = nn.ModuleList(Layer(dim, max(1, dim // 64)) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(dim), nn.Linear(dim, phones)

    def forward(self, mel):
        x = self.enter(mel.unflatten(1, (-1, self.stack)).flatten(2)) + self.place
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class SpecAugment:
    """One time and one frequency stripe per utterance is set to zero, all on the device."""

    def __init__(self, frames, mels, device, seed):
        self.t = torch.arange(frames, device=device)
        self.f = torch.arange(mels, device=device)
        self.gen = torch.Generator(device).manual_seed(seed)

    def stripe(self, axis, batch, widest):
        start = torch.randint(len(axis), (batch, 1), device=axis.device, generator=self.gen)
        width = torch.randint(widest + 1, (batch, 1), device=axis.device, generator=self.gen)
        return (axis < start) | (axis >= start + width)

    def __call__(self, mel):
        keep_t = self.stripe(self.t, len(mel), len(self.t) // 10)
        keep_f = self.stripe(self.f, len(mel), len(self.f) // 5)
        return mel * (keep_t[:, :, None] & keep_f[:, None, :])


def corpus(batches, batch, frames, mels, stack, phones, device):
    """Piecewise constant phones with a mean spectrum each; features in bfloat16 on the device."""
    gen = torch.Generator(device).manual_seed(0)
    spectrum = torch.randn(phones, mels, device=device, generator=gen)
    for _ in range(batches):
        coarse = torch.randint(phones, (batch, frames // stack // 4), device=device, generator=gen)
        label = coarse.repeat_interleave(4, dim=1)
        mel = spectrum[label].repeat_interleave(stack, dim=1)
        mel = mel + 1.5 * torch.randn(mel.shape, device=device, generator=gen)
        yield mel.to(torch.bfloat16), label


def main():
    if GPU:
        size = dict(mels=80, stack=4, frames=2048, dim=512, layers=10, phones=64)
        batch, steps, device = 64, 120, "cuda"
    else:
        size = dict(mels=8, stack=4, frames=64, dim=32, layers=2, phones=8)
        batch, steps, device = 2, 4, "cpu"
    torch.manual_seed(0)
    model = PhoneNet(**size).to(device)
    if GPU:
        for layer in model.layers:
            layer.compile()
    augment = SpecAugment(size["frames"], size["mels"], device, seed=3)
    shape = (size["frames"], size["mels"], size["stack"], size["phones"])
    data = list(corpus(8, batch, *shape, device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
    plan = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=steps + 1)
    meter = torch.zeros(steps, device=device)
    for step in range(steps):
        mel, label = data[step % len(data)]
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(augment(mel)).flatten(0, 1), label.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        plan.step()
        meter[step] = loss.detach()
    curve = meter.tolist()
    print(f"frame loss {curve[0]:.4f} -> {curve[-1]:.4f}")


if __name__ == "__main__":
    main()
