#> steps step_ms=60 device_busy_percent=25
import torch
from torch import nn

class Cell(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.gates = nn.Linear(2 * size, 3 * size)

    def forward(self, x, h):
        z, r, n = self.gates(torch.cat([x, h], -1)).chunk(3, -1)
        #^ cost step_ms=30 device_ms=8 idle_ms=22 cpu_ms=30 launches=1200
        return (1 - z) * n + z * h * r  #> cost step_ms=20 device_ms=5 idle_ms=15 cpu_ms=20 launches=900

def main():
    device = torch.device("cuda")
    net = Cell(64)
    net.to(device)  #> found
    optim = torch.optim.Adam(net.parameters(), fused=True)
    for sequence, target in stream():
        h = torch.zeros(32, 64, device=device)
        for x in sequence:
            h = net(x, h)
        loss = (h - target).square().mean()  #> cost step_ms=0.5 device_ms=0.1 idle_ms=0.4 launches=3
        loss.backward()
        optim.step()  #> cost step_ms=1 device_ms=1 launches=4

main()
