"""A vector quantised autoencoder of mosaic tiles; codes that are never used are set anew."""
import torch
import torch.nn.functional as F
from torch import nn

CONFIG = {
    "tile": 8,
    "width": 128,
    "codes": 256,
    "code_dim": 16,
    "batch": 24,
    "tiles_per_image": 64,
    "steps": 1500,
    "lr": 1e-3,
}


def mosaics(count, tiles, side, gen):
    colours = torch.rand(24, 3, generator=gen)
    pattern = torch.rand(24, side * side, generator=gen)
    kind = torch.randint(24, (count, tiles), generator=gen)
    images = colours[kind][..., None, :] * pattern[kind][..., None]
    return images.flatten(2) + 0.03 * torch.randn(count, tiles, 3 * side * side, generator=gen)


class Usage:
    """Which codes the model has used since the beginning."""

    def __init__(self, codes):
        self.codes = codes
        self.chosen = []  # flaw: memory-growth

    def observe(self, picks):
        self.chosen.append(picks.flatten())  # flaw: memory-growth

    def histogram(self):
        return torch.bincount(torch.cat(self.chosen), minlength=self.codes)  # flaw: memory-growth


class Quantiser(nn.Module):
    def __init__(self, codes, dim):
        super().__init__()
        self.book = nn.Parameter(torch.randn(codes, dim))

    def forward(self, z):
        flat = z.flatten(0, -2)
        picks = torch.addmm(self.book.detach().square().sum(1), flat.detach(), self.book.detach().T, alpha=-2).argmin(1)
        code = F.embedding(picks, self.book).view_as(z)
        commit = F.mse_loss(z, code.detach()) * 0.25 + F.mse_loss(code, z.detach())
        return z + (code - z).detach(), picks, commit

    @torch.no_grad()
    def revive(self, share, z):
        weakest = share.argmin()
        self.book[weakest] = z.flatten(0, -2)[0].detach()


class TileModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        pixels = 3 * cfg["tile"] ** 2
        self.encode = nn.Sequential(
            nn.Linear(pixels, cfg["width"]), nn.ReLU(inplace=True), nn.Linear(cfg["width"], cfg["code_dim"])
        )
        self.quantise = Quantiser(cfg["codes"], cfg["code_dim"])
        self.decode = nn.Sequential(
            nn.Linear(cfg["code_dim"], cfg["width"]), nn.ReLU(inplace=True), nn.Linear(cfg["width"], pixels)
        )

    def forward(self, tiles):
        z = self.encode(tiles)
        straight, picks, commit = self.quantise(z)
        return F.mse_loss(self.decode(straight), tiles) + commit, picks, z


def run(cfg):
    torch.manual_seed(2)
    gen = torch.Generator().manual_seed(8)
    data = mosaics(400, cfg["tiles_per_image"], cfg["tile"], gen)
    model, usage = TileModel(cfg), Usage(cfg["codes"])
    opt = torch.optim.Adam(model.parameters(), lr=cfg["lr"], fused=True)
    for step in range(cfg["steps"]):
        tiles = data[torch.randint(len(data), (cfg["batch"],), generator=gen)]
        loss, picks, z = model(tiles)
        opt.zero_grad()
        loss.backward()
        opt.step()
        usage.observe(picks)
        share = usage.histogram() / ((step + 1) * picks.numel())
        model.quantise.revive(share, z)
        if step % 250 == 249:
            print(f"{step + 1:4d} loss {loss.item():.4f} strongest code {share.max().item():.3f}")


run(CONFIG)
