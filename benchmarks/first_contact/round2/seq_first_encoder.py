import torch
import torch.nn as nn
import torch.nn.functional as F

dev = "cuda" if torch.cuda.is_available() else "cpu"


class SeqFirstAttention(nn.Module):
    """Takes and gives (batch, time, channel); works on (time, batch, channel) inside."""

    def __init__(self, d, h):
        super().__init__()
        self.h, self.hd = h, d // h
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))

    def heads(self, x):
        t, b, _ = x.shape
        return x.view(t, b, self.h, self.hd).permute(1, 2, 0, 3).contiguous()  # flaw: none-yet(layout-churn)

    def forward(self, x):
        x = x.permute(1, 0, 2).contiguous()  # flaw: none-yet(layout-churn)
        q, k, v = self.heads(self.q(x)), self.heads(self.k(x)), self.heads(self.v(x))
        y = F.scaled_dot_product_attention(q, k, v)
        y = y.permute(2, 0, 1, 3).contiguous().flatten(2)  # flaw: none-yet(layout-churn)
        return self.o(y).permute(1, 0, 2).contiguous()  # flaw: none-yet(layout-churn)


class Layer(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.n = nn.LayerNorm(d)
        self.a = SeqFirstAttention(d, h)
        self.m = nn.LayerNorm(d)
        self.f = nn.Sequential(nn.Linear(d, 2 * d), nn.ReLU(), nn.Linear(2 * d, d))

    def forward(self, x):
        x = x + self.a(self.n(x))
        return x + self.f(self.m(x))


def net(d=256, h=4, n=4):
    return nn.Sequential(nn.Linear(40, d), *[Layer(d, h) for _ in range(n)], nn.Linear(d, 64))


def main():
    m = net().to(dev)
    opt = torch.optim.AdamW(m.parameters(), 1e-3, fused=True)
    batch = 192
    x = torch.randn(2, batch, 256, 40, device=dev)
    y = torch.randint(0, 64, (2, batch, 256), device=dev)
    for i in range(400):
        with torch.autocast(dev, dtype=torch.bfloat16):
            loss = F.cross_entropy(m(x[i % 2]).flatten(0, 1), y[i % 2].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if i % 100 == 0:
            print(i, loss.item())


main()
