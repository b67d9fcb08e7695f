"""Policy network for a board game, trained on random positions."""
import os
import torch
from torch import nn
import torch.nn.functional as F

TINY = os.environ.get("TINY") == "1"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cudnn.benchmark = True


class Tower(nn.Module):
    def __init__(self, planes, width, depth):
        super().__init__()
        conv = lambda i, o: nn.Conv2d(i, o, 3, padding=1, bias=False)
        self.stem = nn.Sequential(conv(planes, width), nn.BatchNorm2d(width), nn.ReLU(True))
        self.trunk = nn.ModuleList(
            nn.Sequential(conv(width, width), nn.BatchNorm2d(width), nn.ReLU(True), conv(width, width), nn.BatchNorm2d(width))
            for _ in range(depth)
        )
        self.policy = nn.Conv2d(width, 64, 1)

    def forward(self, boards):
        x = self.stem(boards)
        for block in self.trunk:
            x = F.relu(x + block(x), inplace=True)
        return self.policy(x).flatten(1)


class Games:
    def __init__(self, batch, planes):
        self.batch, self.planes = batch, planes

    def __iter__(self):
        while True:
            boards = torch.rand(self.batch, self.planes, 8, 8, device=DEVICE)
            yield boards.contiguous(memory_format=torch.channels_last), torch.randint(4096, (self.batch,), device=DEVICE)


def main(batch, planes, width, depth, steps):
    torch.manual_seed(0)
    net = Tower(planes, width, depth).to(DEVICE, memory_format=torch.channels_last)
    opt = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, weight_decay=1e-4, fused=True)
    for step, (boards, moves) in zip(range(1, steps + 1), Games(batch, planes)):
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(boards), moves)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 100 == 0 or step == steps:
            print(step, round(loss.item(), 3))


main(*((4, 16, 8, 2, 3) if TINY else (4096, 16, 256, 10, 230)))
