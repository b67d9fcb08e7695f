# Two-speaker separation in the style of time-domain masking networks.
import os
import torch
import torch.nn.functional as F
from torch import nn

SMALL = bool(os.environ.get("SMALL"))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
N, B, H, X = (32, 16, 32, 2) if SMALL else (512, 256, 512, 8)  # filters, bottleneck, hidden, blocks
SAMPLES, BATCH = (1600, 2) if SMALL else (64008, 8)
EPOCHS, PER_EPOCH = (2, 15) if SMALL else (4, 20)


class GlobalNorm(nn.Module):
    def __init__(self, channels, eps=1e-8):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(1, channels, 1))
        self.beta = nn.Parameter(torch.zeros(1, channels, 1))
        self.eps = eps

    def forward(self, y):
        mean = y.mean(dim=(1, 2), keepdim=True)  # flaw: hand-written-norm
        power = torch.pow(y - mean, 2).mean(dim=(1, 2), keepdim=True)  # flaw: hand-written-norm
        return self.gamma * (y - mean) / torch.pow(power + self.eps, 0.5) + self.beta  # flaw: hand-written-norm


class DepthwiseBlock(nn.Module):
    def __init__(self, dilation):
        super().__init__()
        self.widen = nn.Conv1d(B, H, 1)
        self.norm1 = GlobalNorm(H)
        self.depth = nn.Conv1d(H, H, 3, padding=dilation, dilation=dilation, groups=H)
        self.norm2 = GlobalNorm(H)
        self.narrow = nn.Conv1d(H, B, 1)

    def forward(self, x):
        y = self.norm1(F.relu(self.widen(x)))
        y = self.norm2(F.relu(self.depth(y)))
        return x + self.narrow(y)


class Separator(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Conv1d(1, N, 16, stride=8, bias=False)
        self.squeeze = nn.Conv1d(N, B, 1)
        self.blocks = nn.Sequential(*[DepthwiseBlock(2**i) for i in range(X)])
        self.masks = nn.Conv1d(B, 2 * N, 1)
        self.decode = nn.ConvTranspose1d(N, 1, 16, stride=8, bias=False)

    def forward(self, mixture):
        w = F.relu(self.encode(mixture))
        m = self.masks(self.blocks(self.squeeze(w))).sigmoid()
        first, second = m.chunk(2, dim=1)
        return torch.cat([self.decode(w * first), self.decode(w * second)], dim=1)


torch.backends.cudnn.benchmark = True
torch.manual_seed(3)
net = Separator().to(DEVICE)
opt = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
voices = torch.randn(PER_EPOCH, BATCH, 2, SAMPLES, device=DEVICE)
for epoch in range(EPOCHS):
    summed = torch.zeros((), device=DEVICE)
    for pair in voices:
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            guess = net(pair.sum(1, keepdim=True))
        loss = F.l1_loss(guess.float(), pair)
        opt.zero_grad()
        loss.backward()
        opt.step()
        summed += loss.detach()
    print(f"epoch {epoch}: {summed.item() / PER_EPOCH:.4f}")
