"""Extract utterance embeddings: frame network, statistics pooling (Triton), projection."""

import torch
import torch.nn as nn
import torch.nn.functional as F

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
DTYPE = torch.bfloat16 if CUDA else torch.float32
UTTERANCES = 512 if CUDA else 4
FRAMES = 1000 if CUDA else 20
FEATURES, WIDTH, EMBEDDING = (128, 512, 256) if CUDA else (8, 16, 8)
BATCHES = 800 if CUDA else 4

if triton is not None:

    @triton.jit
    def stats_kernel(x, out, T, D: tl.constexpr, BLOCK: tl.constexpr, COLS: tl.constexpr):
        b = tl.program_id(0)
        d = tl.program_id(1) * COLS + tl.arange(0, COLS)
        total = tl.zeros([BLOCK, COLS], tl.float32)
        square = tl.zeros([BLOCK, COLS], tl.float32)
        for start in range(0, T, BLOCK):
            t = start + tl.arange(0, BLOCK)
            inside = (t < T)[:, None] & (d < D)[None, :]
            v = tl.load(x + (b * T + t)[:, None] * D + d[None, :], mask=inside, other=0.0).to(tl.float32)
            total += v
            square += v * v
        mean = tl.sum(total, axis=0) / T
        var = tl.maximum(tl.sum(square, axis=0) / T - mean * mean, 1e-5)
        tl.store(out + b * 2 * D + d, mean, mask=d < D)
        tl.store(out + b * 2 * D + D + d, tl.sqrt(var), mask=d < D)


def statistics_pooling(x):
    """(batch, time, width) -> (batch, 2 * width): mean and standard deviation over time."""
    if not x.is_cuda:
        mean = x.mean(1)
        var = (x.square().mean(1) - mean.square()).clamp_min(1e-5)
        return torch.cat([mean, var.sqrt()], dim=1)
    b, t, d = x.shape
    out = torch.empty(b, 2 * d, device=x.device, dtype=x.dtype)
    stats_kernel[(b, triton.cdiv(d, 64))](x, out, t, d, BLOCK=32, COLS=64)
    return out


class EmbeddingNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.frame1 = nn.Linear(FEATURES, WIDTH)
        self.frame2 = nn.Linear(WIDTH, WIDTH)
        self.frame3 = nn.Linear(WIDTH, WIDTH)
        self.project = nn.Linear(2 * WIDTH, EMBEDDING)

    def forward(self, x):
        x = F.relu_(self.frame1(x))
        x = F.relu_(self.frame2(x))
        x = F.relu_(self.frame3(x))
        return F.normalize(self.project(statistics_pooling(x)).float(), dim=-1)


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    model = EmbeddingNet().to(DEVICE, DTYPE).eval()
    filterbanks = torch.randn(8, UTTERANCES, FRAMES, FEATURES, device=DEVICE, dtype=DTYPE)
    centroid = torch.zeros(EMBEDDING, device=DEVICE)
    for number in range(BATCHES):
        embeddings = model(filterbanks[number % len(filterbanks)])
        centroid += embeddings.mean(dim=0)
    centroid /= BATCHES
    print(f"{BATCHES * UTTERANCES} utterances, centroid norm {centroid.norm().item():.5f}")


if __name__ == "__main__":
    main()
