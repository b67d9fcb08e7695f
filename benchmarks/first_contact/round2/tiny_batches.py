import torch
from torch import nn
import torch.nn.functional as F

torch.backends.cudnn.benchmark = True


def conv_bn(i, o, s=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class Small(nn.Module):
    def __init__(self, w=32, classes=10):
        super().__init__()
        self.f = nn.Sequential(conv_bn(3, w), *[conv_bn(w, w) for _ in range(4)], conv_bn(w, 2 * w, 2),
                               *[conv_bn(2 * w, 2 * w) for _ in range(8)], conv_bn(2 * w, 4 * w, 2), *[conv_bn(4 * w, 4 * w) for _ in range(8)])
        self.c = nn.Linear(4 * w, classes)

    def forward(self, x):
        return self.c(self.f(x).mean((2, 3)))


def stream(device):
    x = torch.randn(50_000, 3, 32, 32, device=device)
    y = torch.randint(0, 10, (50_000,), device=device)
    batch_size = 16  # flaw: small-batch|launch-bound
    while True:
        order = torch.randperm(len(x), device=device)
        for part in order.split(batch_size):
            yield x[part].contiguous(memory_format=torch.channels_last), y[part]


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Small().to(device, memory_format=torch.channels_last)
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)
    for i, (x, y) in enumerate(stream(device)):
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if i % 500 == 0:
            print(i, loss.item())
        if i == 3000:
            break


main()
