"""Inpainting of woven cloth patches, to find loom defects; a patch transformer trained on clean cloth."""
import contextlib
import os

import torch
import torch.nn.functional as F
from torch import cuda, nn

TINY = os.environ.get("TINY") == "1"
where = "cuda" if cuda.is_available() else "cpu"
cfg = {
    "patches": 16 if TINY else 256,
    "inks": 48 if TINY else 768,
    "width": 32 if TINY else 768,
    "layers": 2 if TINY else 10,
    "cloths": 2 if TINY else 96,
    "steps": 4 if TINY else 120,
}


@contextlib.contextmanager
def frugal(budget=0.5):
    """Note the peak memory of what runs inside."""
    peak = []
    try:
        yield peak
    finally:
        if cuda.is_available():
            peak.append(cuda.max_memory_allocated())


class Weave(nn.Module):
    def __init__(self, patches, inks, width, layers):
        super().__init__()
        self.enter, self.leave = nn.Linear(inks, width), nn.Linear(width, inks)
        self.place = nn.Parameter(torch.randn(patches, width) * 0.02)
        self.hole = nn.Parameter(torch.zeros(width))
        layer = nn.TransformerEncoderLayer(width, max(1, width // 64), 4 * width, 0.0, "gelu", batch_first=True,
                                           norm_first=True)
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, cloth, torn):
        x = torch.where(torn, self.hole, self.enter(cloth)) + self.place
        return self.leave(self.body(x))


def bolts(n, patches, inks):
    """Warp and weft: two stripe patterns per cloth."""
    g = torch.Generator(device=where).manual_seed(50)
    ink = torch.arange(inks, device=where)
    patch = torch.arange(patches, device=where)[:, None]
    for _ in range(n):
        f = torch.rand(cfg["cloths"], 2, 1, 1, generator=g, device=where)
        cloth = torch.sin(ink * f[:, 0]) * torch.cos(patch * f[:, 1] * 3)
        yield cloth, torch.rand(cfg["cloths"], patches, 1, generator=g, device=where) < 0.5


def update(net, opt, cloth, torn):
    with torch.autocast(where, dtype=torch.bfloat16):
        mended = net(cloth, torn)
    loss = ((mended.float() - cloth).abs() * torn).mean()
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    return loss.detach()


def main():
    torch.manual_seed(51)
    net = Weave(cfg["patches"], cfg["inks"], cfg["width"], cfg["layers"]).to(where)
    opt = torch.optim.AdamW(net.parameters(), lr=2e-4, fused=True)
    seen = []
    for cloth, torn in bolts(cfg["steps"], cfg["patches"], cfg["inks"]):
        with frugal():
            seen.append(update(net, opt, cloth, torn))
    print("mean absolute error %.4f, at the end %.4f" % (torch.stack(seen).mean().item(), seen[-1].item()))


if __name__ == "__main__":
    main()
