"""Fully connected autoencoder over flattened face images."""
import os
import torch
from torch import nn
import torch.nn.functional as F


class FaceCode(nn.Module):
    def __init__(self, pixels, wide, code):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(pixels, wide), nn.ReLU(), nn.Linear(wide, code))
        self.decode = nn.Sequential(nn.Linear(code, wide), nn.ReLU(), nn.Linear(wide, pixels))

    def forward(self, x):
        return self.decode(self.encode(x))


def epochs(faces, batch, steps):
    order = torch.randperm(len(faces), device=faces.device)
    for i in range(steps):
        start = i * batch % (len(faces) - batch + 1)
        yield faces[order[start : start + batch]]


def main():
    small = os.environ.get("SMALL") == "1"
    device = "cuda" if torch.cuda.is_available() else "cpu"
    pixels, wide, code, batch, steps = (256, 64, 16, 8, 30) if small else (96 * 96 * 3, 4096, 1024, 256, 120)
    faces = torch.rand(batch * 6, pixels, device=device)
    net = FaceCode(pixels, wide, code).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    for number, face in enumerate(epochs(faces, batch, steps)):
        optimizer.zero_grad(set_to_none=False)  # flaw: zeroed-gradients
        with torch.autocast(device, dtype=torch.bfloat16):
            rebuilt = net(face)
        loss = F.mse_loss(rebuilt.float(), face)
        loss.backward()
        optimizer.step()
        if (number + 1) % 60 == 0:
            print(f"{number + 1} {loss.item():.5f}")
    print("done", loss.item())


if __name__ == "__main__":
    main()
