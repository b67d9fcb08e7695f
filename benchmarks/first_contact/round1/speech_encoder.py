"""A speech encoder trained frame by frame on made-up filterbanks."""
import torch
from torch import nn

CFG = dict(
    model=dict(mels=80, dim=512, heads=8, layers=6, symbols=64),
    data=dict(batch=16, frames=1600, text=60),
    optim=dict(lr=2e-4, steps=320),
)


class Attend(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.inp = nn.Linear(dim, dim * 3)
        self.out = nn.Linear(dim, dim)

    def forward(self, x, keep):
        B, T, D = x.size()
        H = self.heads
        q, k, v = (p.view(B, T, H, D // H) for p in self.inp(x).split(D, dim=2))
        logits = torch.einsum("bthd,bshd->bhts", q, k).div((D // H) ** 0.5)  # flaw: hand-written-attention
        never = torch.finfo(logits.dtype).min
        logits = torch.where(keep[:, None, None, :], logits, never)  # flaw: hand-written-attention
        probs = logits.float().softmax(3).type_as(v)  # flaw: hand-written-attention
        heard = torch.einsum("bhts,bshd->bthd", probs, v)  # flaw: hand-written-attention
        return self.out(heard.flatten(2))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln_a, self.ln_f = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attend = Attend(dim, heads)
        self.feed = nn.Sequential(nn.Linear(dim, 4 * dim), nn.SiLU(), nn.Linear(4 * dim, dim))

    def forward(self, x, keep):
        x = x + self.attend(self.ln_a(x), keep)
        return x + self.feed(self.ln_f(x))


class Encoder(nn.Module):
    def __init__(self, mels, dim, heads, layers, symbols):
        super().__init__()
        self.subsample = nn.Linear(mels * 2, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.symbols = nn.Linear(dim, symbols)

    def forward(self, fbank, lengths):
        B, T, M = fbank.shape
        x = self.subsample(fbank.reshape(B, T // 2, M * 2))
        keep = torch.arange(T // 2, device=x.device) < (lengths // 2)[:, None]
        for block in self.blocks:
            x = block(x, keep)
        return self.symbols(x)


class Recipe:
    def __init__(self, cfg):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.cfg = cfg
        self.net = Encoder(**cfg["model"]).to(self.device)
        self.opt = torch.optim.Adam(self.net.parameters(), lr=cfg["optim"]["lr"], fused=True)
        d = cfg["data"]
        self.fbank = torch.randn(d["batch"], d["frames"], cfg["model"]["mels"], device=self.device)
        self.lengths = torch.full((d["batch"],), d["frames"], device=self.device)
        self.text = torch.randint(1, cfg["model"]["symbols"], (d["batch"], d["frames"] // 2), device=self.device)

    def step(self):
        with torch.autocast(self.device, torch.bfloat16):
            scores = self.net(self.fbank, self.lengths)
        # every frame has its symbol in this toy: forced alignment instead of CTC
        return nn.functional.cross_entropy(scores.float().flatten(0, 1), self.text.flatten())

    def run(self):
        for _ in range(self.cfg["optim"]["steps"]):
            self.opt.zero_grad()
            self.step().backward()
            self.opt.step()


if __name__ == "__main__":
    Recipe(CFG).run()
