import copy
import os

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

small = "SMALL" in os.environ
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
args = dict(dim=384, depth=24, side=64, patch=8, batch=128, steps=70, images=1024, workers=6)
if small:
    args.update(dim=32, depth=2, side=16, batch=4, steps=30, images=64, workers=2)


class TwoCrops(Dataset):
    def __init__(self, count, side, length):
        g = torch.Generator().manual_seed(3)
        self.side, self.length = side, length
        self.pixels = torch.randint(0, 256, (count, 3, side + 8, side + 8), dtype=torch.uint8, generator=g)

    def __len__(self):
        return self.length

    def crop(self, img):
        y, x = torch.randint(0, 9, (2,)).tolist()
        return img[:, y : y + self.side, x : x + self.side]

    def __getitem__(self, i):
        img = self.pixels[i % len(self.pixels)]
        return self.crop(img), self.crop(img).flip(-1)


class Encoder(nn.Module):
    def __init__(self, dim, depth, side, patch):
        super().__init__()
        self.stem = nn.Conv2d(3, dim, patch, patch)
        self.pos = nn.Parameter(torch.zeros(1, (side // patch) ** 2, dim))
        layer = nn.TransformerEncoderLayer(dim, dim // 16, 4 * dim, 0.0, F.gelu, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, depth, nn.LayerNorm(dim), enable_nested_tensor=False)
        self.proj = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, 256))

    def forward(self, x):
        x = self.stem(x).flatten(2).transpose(1, 2) + self.pos
        return self.proj(self.body(x).mean(1))


class MomentumMixin:
    momentum = 0.996

    def attach_target(self, online):
        self.target = copy.deepcopy(online).requires_grad_(False)
        self.pairs = list(zip(self.target.parameters(), online.parameters()))

    @torch.no_grad()
    def follow(self):
        m = self.momentum
        for slow, fast in self.pairs:  # flaw: parameter-loop
            slow.copy_(slow * m + fast * (1 - m))  # flaw: parameter-loop


class Byol(MomentumMixin):
    def __init__(self):
        self.online = Encoder(args["dim"], args["depth"], args["side"], args["patch"]).to(device)
        self.head = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256)).to(device)
        self.attach_target(self.online)
        params = [*self.online.parameters(), *self.head.parameters()]
        self.opt = torch.optim.AdamW(params, lr=3e-4, weight_decay=0.05, fused=True)

    def step(self, a, b):
        both = torch.cat([a, b]).to(device, non_blocking=True).float().div_(255)
        with torch.autocast(device.type, torch.bfloat16):
            pred = self.head(self.online(both))
            with torch.no_grad():
                goal = self.target(both).roll(len(a), 0)
        loss = 2 - 2 * F.cosine_similarity(pred.float(), goal.float(), dim=-1).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.follow()
        return loss.detach()


class PinnedPair:
    """Hands both views of a batch over as they come from the loader."""

    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        for a, b in self.loader:
            yield a.to(device, non_blocking=True), b.to(device, non_blocking=True)


if __name__ == "__main__":
    torch.manual_seed(0)
    data = TwoCrops(args["images"], args["side"], args["batch"] * args["steps"])
    loader = DataLoader(
        data, args["batch"], num_workers=args["workers"], pin_memory=device.type == "cuda", prefetch_factor=4
    )
    learner = Byol()
    total = torch.zeros((), device=device)
    for n, (a, b) in enumerate(PinnedPair(loader), 1):
        total += learner.step(a, b)
        if n % 30 == 0:
            print(n, float(total) / n)
