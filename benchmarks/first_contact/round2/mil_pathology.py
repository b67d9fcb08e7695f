"""Multiple instance learning: a bag of patch features per slide, gated attention pooling."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class GatedPool(nn.Module):
    def __init__(self, d, a=256):
        super().__init__()
        self.v, self.u, self.w = nn.Linear(d, a), nn.Linear(d, a), nn.Linear(a, 1)

    def forward(self, x):
        s = self.w(torch.tanh(self.v(x)) * torch.sigmoid(self.u(x)))
        return s


class SlideNet(nn.Module):
    def __init__(self, d=1024, classes=5):
        super().__init__()
        self.pre = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d), nn.ReLU())
        self.pool = GatedPool(d)
        self.cls = nn.Linear(d, classes)

    def forward(self, bags):
        feats = self.pre(bags)
        pooled = []
        for i in range(feats.shape[0]):  # flaw: python-loop-over-tensor
            bag = feats[i]  # flaw: python-loop-over-tensor
            score = torch.softmax(self.pool(bag), dim=0)  # flaw: python-loop-over-tensor
            pooled.append((score.to(bag.dtype) * bag).sum(0))  # flaw: python-loop-over-tensor
        return self.cls(torch.stack(pooled))


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    batch, patches = 96, 256
    net = SlideNet().to(device)
    opt = torch.optim.AdamW(net.parameters(), 1e-4, fused=True)
    bags = torch.randn(2, batch, patches, 1024, device=device, dtype=torch.bfloat16)
    grade = torch.randint(0, 5, (2, batch), device=device)
    for i in range(400):
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(bags[i % 2]), grade[i % 2])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if i % 50 == 0:
            print(i, loss.item())


if __name__ == "__main__":
    main()
