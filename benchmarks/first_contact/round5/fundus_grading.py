"""Grade diabetic retinopathy in fundus photographs (synthetic), one short training run."""
import os
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn
from torch.utils import data as tud

if os.environ.get("SMALL") == "1":
    opt = SimpleNamespace(res=48, batch=4, steps=30, width=8)
else:
    opt = SimpleNamespace(res=160, batch=48, steps=60, width=96)


class Fundus(tud.Dataset):
    GRADES = 5

    def __init__(self, length, res):
        self.length, self.res = length, res
        yy, xx = np.mgrid[-1:1:res * 1j, -1:1:res * 1j].astype(np.float32)
        self.disc = ((xx ** 2 + yy ** 2) < 0.9)[..., None].astype(np.float32)
        self.raw = np.random.default_rng(2).integers(0, 256, (64, res, res, 3), dtype=np.uint8)

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        img = self.raw[index % 64].astype(np.float32) / 255
        img = np.rot90(img, index % 4)
        img = np.power(img, rng.uniform(0.7, 1.4)) * self.disc
        img += rng.normal(0, 0.02, img.shape).astype(np.float32)
        img = np.clip((img - 0.4) / 0.25, -3, 3).astype(np.float16)
        return torch.from_numpy(img), index % self.GRADES


def build_loader(ds):
    extra = {}
    if torch.cuda.is_available():
        extra["pin_memory"] = True
    return tud.DataLoader(ds, batch_size=opt.batch, num_workers=1, persistent_workers=True, **extra)  # flaw: too-few-loader-workers


def unit(i, o, s):
    return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class Grader(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.a = nn.Sequential(unit(3, w, 2), unit(w, w, 1), unit(w, w, 1))
        self.b = nn.Sequential(unit(w, 2 * w, 2), unit(2 * w, 2 * w, 1), unit(2 * w, 2 * w, 1))
        self.c = nn.Sequential(unit(2 * w, 4 * w, 2), unit(4 * w, 4 * w, 1))
        self.fc = nn.Linear(4 * w, Fundus.GRADES)

    def forward(self, x):
        return self.fc(self.c(self.b(self.a(x))).mean((2, 3)))


def run():
    torch.backends.cudnn.benchmark = True
    where = "cuda" if torch.cuda.is_available() else "cpu"
    net = Grader(opt.width).to(where, memory_format=torch.channels_last)
    sgd = torch.optim.SGD(net.parameters(), 0.02, momentum=0.9, fused=True)
    ce = nn.CrossEntropyLoss(label_smoothing=0.05)
    seen = torch.zeros((), device=where)
    for k, (img, grade) in enumerate(build_loader(Fundus(opt.batch * opt.steps, opt.res))):
        img = img.to(where, non_blocking=True).permute(0, 3, 1, 2)
        grade = grade.to(where, non_blocking=True)
        with torch.autocast(where, dtype=torch.bfloat16):
            loss = ce(net(img.bfloat16()), grade)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        seen += loss.detach()
        if k % 20 == 19:
            print(k + 1, (seen / (k + 1)).item())


if __name__ == "__main__":
    run()
