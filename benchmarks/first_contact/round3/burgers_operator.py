"""Deep operator network for Burgers' equation: branch on initial fields, trunk on points."""
import os
import torch
from torch import nn
import torch.nn.functional as F

small = os.environ.get("SMALL") == "1"
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True


def perceptron(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.GELU()]
    return nn.Sequential(*layers[:-1])


class DeepONet(nn.Module):
    def __init__(self, sensors, width, modes):
        super().__init__()
        self.branch = perceptron(sensors, width, width, width, modes)
        self.trunk = perceptron(2, width, width, width, modes)
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, u, where):
        return self.branch(u) @ self.trunk(where).t() + self.bias


def train(device):
    sensors, width, modes, batch, points, steps = (16, 16, 8, 4, 16, 30) if small else (256, 1024, 512, 4096, 8192, 70)
    model = DeepONet(sensors, width, modes).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    starts = torch.randn(batch * 2, sensors, device=device)
    where = torch.rand(points, 2, device=device)
    truth = torch.randn(batch, points, device=device) * 0.1
    history = []
    for step in range(steps):
        u = starts[step % 2 * batch :][:batch]
        with torch.autocast(device, dtype=torch.bfloat16):
            guess = model(u, where)
        loss = F.mse_loss(guess.float(), truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.detach())
    return torch.stack(history).tolist()


if __name__ == "__main__":
    curve = train("cuda" if torch.cuda.is_available() else "cpu")
    print(curve[0], curve[-1])
