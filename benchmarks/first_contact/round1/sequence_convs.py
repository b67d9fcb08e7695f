"""Alternates normalisation over features and convolution over time."""
import torch
from torch import nn


class TimeBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm = nn.LayerNorm(c)
        self.conv = nn.Conv1d(c, c, 3, padding=1, groups=c)
        self.point = nn.Linear(c, c)

    def forward(self, x):
        y = self.norm(x.permute(0, 2, 1).contiguous())  # flaw: none-yet(permute-contiguous)
        y = y.permute(0, 2, 1).contiguous()  # flaw: none-yet(permute-contiguous)
        y = torch.relu(self.conv(y)).permute(0, 2, 1).contiguous()  # flaw: none-yet(permute-contiguous)
        y = self.point(y)
        return x + y.permute(0, 2, 1).contiguous()  # flaw: none-yet(permute-contiguous)


torch.backends.cudnn.benchmark = True
device = "cuda" if torch.cuda.is_available() else "cpu"
net = nn.Sequential(*[TimeBlock(512) for _ in range(6)]).to(device)
opt = torch.optim.AdamW(net.parameters(), 1e-4, fused=True)
x, y = torch.randn(2, 32, 512, 1024, device=device)
for _ in range(320):
    with torch.autocast(device, torch.bfloat16):
        loss = nn.functional.mse_loss(net(x).float(), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
