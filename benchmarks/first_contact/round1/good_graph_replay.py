"""A small policy whose update is one CUDA graph."""
import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
net = nn.Sequential(nn.Linear(1024, 2048), nn.GELU(), nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 64)).to(device)
step = torch.compile(lambda x, y: nn.functional.mse_loss(net(x), y), mode="reduce-overhead")
opt = torch.optim.Adam(net.parameters(), 1e-4, fused=True)
x, y = torch.randn(32768, 1024, device=device), torch.randn(32768, 64, device=device)
for _ in range(500):
    with torch.autocast(device, torch.bfloat16):
        loss = step(x, y)
    loss.backward()
    opt.step()
    opt.zero_grad()
