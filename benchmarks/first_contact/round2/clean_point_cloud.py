import torch
from torch import Tensor, nn


class SetAbstraction(nn.Module):
    """Features of every point, pooled over the set and handed back to the points."""

    def __init__(self, i: int, o: int):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(i, o), nn.ReLU(inplace=True), nn.Linear(o, o))
        self.g = nn.Linear(o, o)
        self.norm = nn.LayerNorm(o)

    def forward(self, x: Tensor) -> Tensor:
        h = self.f(x)
        return self.norm(h + self.g(h.amax(1, keepdim=True)))


class PointNet(nn.Module):
    def __init__(self, widths=(6, 512, 1024, 1024), parts: int = 48):
        super().__init__()
        self.layers = nn.ModuleList(SetAbstraction(a, b) for a, b in zip(widths, widths[1:]))
        self.out = nn.Linear(widths[-1], parts)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.out(x)


def generate(device: str, batch: int, points: int):
    clouds = torch.randn(3 * batch, points, 6, device=device)
    parts = torch.randint(0, 48, (3 * batch, points), device=device)
    while True:
        pick = torch.randint(0, 3 * batch, (batch,), device=device)
        yield clouds[pick], parts[pick]


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = PointNet().to(device)
    opt = torch.optim.AdamW(net.parameters(), 1e-3, fused=True)
    for step, (cloud, part) in zip(range(400), generate(device, batch=24, points=2048)):
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(net(cloud).flatten(0, 1), part.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
