"""Next-frame prediction on mel bands with a compiled transformer."""
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
DIM, HEADS, DEPTH = (32, 2, 2) if SMALL else (768, 12, 6)
FRAMES, BANDS, BATCH = (32, 16, 2) if SMALL else (512, 80, 24)
STEPS = 30 if SMALL else 80
BACKEND = "eager" if SMALL else "inductor"


class Tamer(nn.Module):
    """Keeps activations inside the range that the 16-bit export supports."""

    def __init__(self, ceiling=200.0):
        super().__init__()
        self.ceiling = ceiling

    def forward(self, x):
        top = x.detach().abs().amax()  # flaw: graph-break
        if top > self.ceiling:  # flaw: graph-break
            x = x * (self.ceiling / top)  # flaw: graph-break
        return x


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.pre, self.post = nn.RMSNorm(DIM), nn.RMSNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM, bias=False)
        self.out = nn.Linear(DIM, DIM, bias=False)
        self.gate = nn.Linear(DIM, 4 * DIM, bias=False)
        self.value = nn.Linear(DIM, 4 * DIM, bias=False)
        self.join = nn.Linear(4 * DIM, DIM, bias=False)
        self.tame_a, self.tame_b = Tamer(), Tamer()

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.pre(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4).unbind(0)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = self.tame_a(x + self.out(a.transpose(1, 2).reshape(b, t, DIM)))
        z = self.post(x)
        return self.tame_b(x + self.join(F.silu(self.gate(z)) * self.value(z)))


class BandModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(BANDS, DIM)
        self.place = nn.Parameter(torch.zeros(FRAMES, DIM))
        self.layers = nn.ModuleList(Layer() for _ in range(DEPTH))
        self.leave = nn.Linear(DIM, BANDS)
        for layer in self.layers:
            layer.compile(backend=BACKEND)

    def forward(self, bands):
        x = self.enter(bands) + self.place
        for layer in self.layers:
            x = layer(x)
        return self.leave(x)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = BandModel().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    music = torch.randn(BATCH * 8, FRAMES + 1, BANDS, device=device).cumsum(1) * 0.1
    for step in range(STEPS):
        clip = music[torch.randint(len(music), (BATCH,), device=device)]
        with torch.autocast(device.type, dtype=torch.bfloat16):
            guess = model(clip[:, :-1])
        loss = F.mse_loss(guess.float(), clip[:, 1:])
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 20 == 0:
            print(step, f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
