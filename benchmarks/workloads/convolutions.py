"""A convolutional network with biases before its norms, channels first, in float32."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
WIDTH, SIZE, BATCH = (128, 112, 64) if device == "cuda" else (16, 24, 4)


def block(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())


def main():
    torch.manual_seed(0)
    layers = [block(3, WIDTH), *(block(WIDTH, WIDTH) for _ in range(6))]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(WIDTH, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x, y = torch.randn(BATCH, 3, SIZE, SIZE, device=device), torch.randint(0, 10, (BATCH,), device=device)
    for _ in range(2000):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
