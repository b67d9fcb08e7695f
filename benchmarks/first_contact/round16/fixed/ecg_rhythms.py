import os
import torch
from torch import nn, optim

TINY = os.environ.get("TINY") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
N, LEADS, LENGTH, WIDTH, STEPS = (6, 2, 256, 8, 3) if TINY else (512, 12, 2048, 128, 600)
torch.manual_seed(8)
torch.set_float32_matmul_precision("high")
torch.backends.cudnn.benchmark = True


def cleaned(trace):
    """Recordings (..., leads, time): baseline removed, scaled by its spread, spikes cut."""
    flat = trace - trace.mean(-1, keepdim=True)
    spread = flat.square().mean(-1, keepdim=True).sqrt()
    return torch.clamp(flat / (spread + 1e-4), -6, 6)


class Front(nn.Module):
    def forward(self, recordings):
        return cleaned(recordings)


class Rhythms(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = Front()
        self.patch = nn.Conv1d(LEADS, WIDTH, 32, 16, 8)
        block = lambda: nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, 0.0, nn.functional.gelu, batch_first=True, norm_first=True)
        self.blocks = nn.ModuleList([block() for _ in range(4)])
        self.verdict = nn.Linear(WIDTH, 9)

    def forward(self, recordings):
        x = self.patch(self.front(recordings)).transpose(1, 2)
        for b in self.blocks:
            x = b(x)
        return self.verdict(x.mean(1))


def recordings():
    t = torch.linspace(0, 60, LENGTH, device=device)
    while True:
        rhythm = torch.randint(9, (N,), device=device)
        wave = torch.sin(t * (1 + rhythm.view(-1, 1, 1) / 3))
        yield wave * 40 + torch.randn(N, LEADS, LENGTH, device=device) * 10 + 200, rhythm


net = Rhythms().to(device)
opt = optim.AdamW(net.parameters(), lr=5e-4, fused=True)
loss_fn = nn.CrossEntropyLoss()
source = recordings()
history = []
for step in range(STEPS):
    x, y = next(source)
    with torch.autocast(device.type, torch.bfloat16):
        loss = loss_fn(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    history.append(loss.detach())
print("first", f"{history[0].item():.3f}", "last", f"{history[-1].item():.3f}")
