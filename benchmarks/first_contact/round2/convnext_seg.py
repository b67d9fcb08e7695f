"""ConvNeXt-ish backbone on feature maps."""
import torch
import torch.nn as nn

torch.backends.cudnn.benchmark = True


class LayerNorm2d(nn.Module):
    def __init__(self, channels, eps=1e-6):
        super().__init__()
        self.g = nn.Parameter(torch.ones(channels, 1, 1))
        self.b = nn.Parameter(torch.zeros(channels, 1, 1))
        self.eps = eps

    def forward(self, x):
        mu = x.mean(1, keepdim=True)  # flaw: hand-written-norm
        var = (x - mu).pow(2).mean(1, keepdim=True)  # flaw: hand-written-norm
        x = (x - mu) / torch.sqrt(var + self.eps)  # flaw: hand-written-norm
        return self.g * x + self.b  # flaw: hand-written-norm


class Stage(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.dw = nn.Conv2d(c, c, 3, padding=1, bias=False)
        self.norm = LayerNorm2d(c)
        self.pw1, self.act, self.pw2 = nn.Conv2d(c, 2 * c, 1), nn.GELU(), nn.Conv2d(2 * c, c, 1)

    def forward(self, x):
        return x + self.pw2(self.act(self.pw1(self.norm(self.dw(x)))))


def make(c, n, classes):
    return nn.Sequential(nn.Conv2d(3, c, 4, 4), *[Stage(c) for _ in range(n)], nn.Conv2d(c, classes, 1))


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    batch = 48
    net = make(192, 4, 32).to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), 4e-4, weight_decay=0.05, fused=True)
    x = torch.randn(batch, 3, 224, 224, device=device).to(memory_format=torch.channels_last)
    y = torch.randint(0, 32, (batch, 56, 56), device=device)
    for it in range(1, 401):
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if it % 100 == 0:
            print(it, loss.item())
