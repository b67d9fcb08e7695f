import random

import torch
import torch.nn as nn


def seed_everything(seed: int):
    random.seed(seed)
    torch.manual_seed(seed)
    torch.backends.cudnn.benchmark = False  # flaw: untuned-convolution


class TemporalNet(nn.Module):
    def __init__(self, c=96, classes=40):
        super().__init__()
        self.stem = nn.Conv3d(3, c, (1, 4, 4), (1, 4, 4), bias=False)
        self.convs = nn.ModuleList(
            nn.Conv3d(c, c, (3, 3, 3), padding=(d, 1, 1), dilation=(d, 1, 1), bias=False) for d in (1, 2, 4))
        self.norms = nn.ModuleList(nn.BatchNorm3d(c) for _ in range(3))
        self.fc = nn.Linear(c, classes)

    def forward(self, v):
        x = self.stem(v)
        for conv, norm in zip(self.convs, self.norms):
            x = torch.relu(norm(conv(x)))
        return self.fc(x.mean((2, 3, 4)))


def run():
    seed_everything(11)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    batch = 16
    fmt = torch.channels_last_3d
    net = TemporalNet().to(device, memory_format=fmt)
    opt = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, fused=True)
    video = torch.randn(batch, 3, 16, 112, 112, device=device).to(memory_format=fmt)
    label = torch.randint(0, 40, (batch,), device=device)
    for i in range(400):
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(net(video), label)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if i % 100 == 0:
            print(i, loss.item())


if __name__ == "__main__":
    run()
