import contextlib
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

small = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cudnn.benchmark = True


class Translator(nn.Module):
    def __init__(self, c, blocks):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(3, c, 7, 1, 3), nn.ReLU(True), nn.Conv2d(c, 2 * c, 3, 2, 1), nn.ReLU(True))
        self.body = nn.ModuleList(nn.Sequential(nn.GroupNorm(4, 2 * c), nn.Conv2d(2 * c, 2 * c, 3, 1, 1), nn.ReLU(True)) for _ in range(blocks))
        self.dec = nn.Sequential(nn.ConvTranspose2d(2 * c, c, 2, 2), nn.ReLU(True), nn.Conv2d(c, 3, 7, 1, 3))

    def forward(self, x):
        x = self.enc(x)
        for block in self.body:
            x = x + block(x)
        return self.dec(x)


@contextlib.contextmanager
def update(optimizer):
    optimizer.zero_grad(set_to_none=True)
    yield
    optimizer.step()
    if device == "cuda":
        torch.cuda.empty_cache()  # flaw: cache-emptied-in-step


def patches(count, batch, side):
    summer = torch.rand(batch * 4, 3, side, side, device=device).contiguous(memory_format=torch.channels_last)
    winter = summer.flip(3).contiguous(memory_format=torch.channels_last)
    for k in range(count):
        at = k % 4 * batch
        yield summer[at : at + batch], winter[at : at + batch]


def main():
    c, blocks, batch, side, steps = (4, 1, 2, 16, 30) if small else (64, 6, 8, 256, 100)
    net = Translator(c, blocks).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(net.parameters(), 2e-4, fused=True)
    mean = torch.zeros((), device=device)
    for a, b in patches(steps, batch, side):
        with update(optimizer):
            with torch.autocast(device, dtype=torch.bfloat16):
                out = net(a)
            loss = F.l1_loss(out.float(), b)
            loss.backward()
        mean += loss.detach() / steps
    print("mean l1", mean.item())


if __name__ == "__main__":
    main()
