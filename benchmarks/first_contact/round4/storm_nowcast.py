"""Radar nowcasting: eight past reflectivity fields in, four future fields out."""
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

S = os.environ.get("SMALL") == "1"


def pair(i, o, stride=1):
    return nn.Sequential(
        nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
        nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class Nowcaster(nn.Module):
    def __init__(self, past, future, w):
        super().__init__()
        self.e0, self.e1, self.e2 = pair(past, w), pair(w, 2 * w, 2), pair(2 * w, 4 * w, 2)
        self.u1, self.u0 = nn.ConvTranspose2d(4 * w, 2 * w, 2, 2), nn.ConvTranspose2d(2 * w, w, 2, 2)
        self.d1, self.d0 = pair(4 * w, 2 * w), pair(2 * w, w)
        self.tail = nn.Conv2d(w, future, 1)

    def forward(self, x):
        a = self.e0(x)
        b = self.e1(a)
        c = self.e2(b)
        b = self.d1(torch.cat((self.u1(c), b), 1))
        return self.tail(self.d0(torch.cat((self.u0(b), a), 1)))


class Archive:
    """A year of radar held on the device as bytes."""

    def __init__(self, hours, side, device):
        self.fields = torch.randint(0, 70, (hours, side, side), dtype=torch.uint8, device=device)
        self.window = torch.arange(12, device=device)

    def sample(self, n):
        start = torch.randint(len(self.fields) - 12, (n, 1), device=self.fields.device)
        block = self.fields[start + self.window].to(torch.bfloat16).div_(70)
        return block[:, :8].contiguous(memory_format=torch.channels_last), block[:, 8:]


def main():
    side, batch, width, steps, hours = (32, 2, 8, 30, 40) if S else (256, 16, 64, 90, 1000)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    archive = Archive(hours, side, device)
    net = Nowcaster(8, 4, width).to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), lr=4e-4, weight_decay=1e-2, fused=device.type == "cuda")
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, steps)
    for step in range(steps):
        past, future = archive.sample(batch)
        with torch.autocast(device.type, torch.bfloat16):
            loss = F.smooth_l1_loss(net(past), future, beta=0.1)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if step % 30 == 0:
            print(f"step {step}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
