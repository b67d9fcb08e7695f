import torch
import torch.nn as nn
import torch.nn.functional as F

K = 128


def centroids(z, y):
    out = []
    for k in range(K):  # flaw: python-loop-over-tensor
        m = (y == k).to(z.dtype)  # flaw: python-loop-over-tensor
        out.append((z * m[:, None]).sum(0) / m.sum().clamp_min(1))  # flaw: python-loop-over-tensor
    return torch.stack(out)


def fit(steps=400, n=8192, device="cuda" if torch.cuda.is_available() else "cpu"):
    f = nn.Sequential(nn.Linear(784, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 256)).to(device)
    o = torch.optim.Adam(f.parameters(), 1e-3, fused=True)
    x = torch.randn(n * 2, 784, device=device)
    y = torch.randint(0, K, (n * 2,), device=device)
    for s in range(steps):
        i = torch.randint(0, n * 2, (n,), device=device)
        with torch.autocast(device, dtype=torch.bfloat16):
            z = f(x[i])
        c = centroids(z.detach().float(), y[i])
        with torch.autocast(device, dtype=torch.bfloat16):
            l = F.cross_entropy(z @ c.t(), y[i])
        o.zero_grad(set_to_none=True)
        l.backward()
        o.step()
        if s % 100 == 0:
            print(s, l.item())


if __name__ == "__main__":
    fit()
