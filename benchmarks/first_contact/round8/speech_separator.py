"""Two-speaker separation with a transformer mask network on a learned filterbank (permutation-invariant SI-SNR)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True


class ChannelwiseLayerNorm(nn.Module):
    """cLN: statistics over the channels of each frame."""

    def __init__(self, channels, eps=1e-8):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(channels))
        self.beta = nn.Parameter(torch.zeros(channels))
        self.eps = eps

    def forward(self, y):
        mean = y.mean(dim=-1, keepdim=True)  # flaw: hand-written-norm
        var = ((y - mean) ** 2).mean(dim=-1, keepdim=True)  # flaw: hand-written-norm
        return self.gamma * (y - mean) / torch.sqrt(var + self.eps) + self.beta  # flaw: hand-written-norm


class SeparatorBlock(nn.Module):
    def __init__(self, channels, heads, expand):
        super().__init__()
        self.heads = heads
        self.norm1 = ChannelwiseLayerNorm(channels)
        self.qkv = nn.Linear(channels, 3 * channels)
        self.out = nn.Linear(channels, channels)
        self.norm2 = ChannelwiseLayerNorm(channels)
        self.ff = nn.Sequential(nn.Linear(channels, expand * channels), nn.GELU(), nn.Linear(expand * channels, channels))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, c))
        return x + self.ff(self.norm2(x))


class Separator(nn.Module):
    def __init__(self, kernel, channels, blocks, heads, speakers=2):
        super().__init__()
        self.kernel, self.speakers = kernel, speakers
        self.analysis = nn.Linear(kernel, channels, bias=False)
        self.blocks = nn.ModuleList(SeparatorBlock(channels, heads, 4) for _ in range(blocks))
        self.norm = ChannelwiseLayerNorm(channels)
        self.mask = nn.Linear(channels, speakers * channels)
        self.synthesis = nn.Linear(channels, kernel, bias=False)

    def forward(self, wave):
        frames = wave.view(wave.shape[0], -1, self.kernel)
        w = self.analysis(frames)
        h = w
        for block in self.blocks:
            h = block(h)
        m = torch.sigmoid(self.mask(self.norm(h))).view(*w.shape[:2], self.speakers, -1)
        est = self.synthesis(w.unsqueeze(2) * m)
        return est.transpose(1, 2).reshape(wave.shape[0], self.speakers, -1)


def si_snr(est, ref):
    est = est - est.mean(-1, keepdim=True)
    ref = ref - ref.mean(-1, keepdim=True)
    proj = (est * ref).sum(-1, keepdim=True) * ref / (ref.square().sum(-1, keepdim=True) + 1e-8)
    return 10 * torch.log10(proj.square().sum(-1) / ((est - proj).square().sum(-1) + 1e-8) + 1e-8)


def pit_loss(est, ref):
    straight = si_snr(est, ref).mean(1)
    crossed = si_snr(est, ref.flip(1)).mean(1)
    return -torch.maximum(straight, crossed).mean()


class Trainer:
    def __init__(self, device, cfg):
        self.device, self.cfg = device, cfg
        self.model = Separator(cfg["kernel"], cfg["channels"], cfg["blocks"], cfg["heads"]).to(device)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=3e-4, fused=device.type == "cuda")
        self.sources = torch.randn(cfg["pool"], cfg["frames"] * cfg["kernel"], device=device) * 0.1

    def batch(self):
        i = torch.randint(self.cfg["pool"], (2, self.cfg["batch"]), device=self.device)
        return self.sources[i].transpose(0, 1)

    def step(self):
        refs = self.batch()
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            est = self.model(refs.sum(1))
        loss = pit_loss(est.float(), refs)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        return loss.detach()

    def fit(self):
        for i in range(self.cfg["steps"]):
            loss = self.step()
            if i % 20 == 0:
                print(f"step {i:4d}  si-snr {-loss.item():.3f} dB")
        print(f"last {loss.item():.5f}")


if __name__ == "__main__":
    cuda = torch.cuda.is_available()
    torch.manual_seed(0)
    big = dict(kernel=32, channels=512, blocks=6, heads=8, frames=1024, batch=32, pool=512, steps=100)
    small = dict(kernel=32, channels=32, blocks=1, heads=2, frames=20, batch=2, pool=8, steps=3)
    Trainer(torch.device("cuda" if cuda else "cpu"), big if cuda else small).fit()
