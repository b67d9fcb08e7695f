import os
import torch
from torch import nn


def focal(logits, onehot, gamma=2.0, alpha=0.25):
    """Focal loss over all pixels and classes."""
    p = torch.sigmoid(logits)  # flaw: hand-written-loss
    bce = -(onehot * torch.log(p + 1e-8) + (1 - onehot) * torch.log(1 - p + 1e-8))  # flaw: hand-written-loss
    pt = onehot * p + (1 - onehot) * (1 - p)
    weight = onehot * alpha + (1 - onehot) * (1 - alpha)
    return (weight * (1 - pt) ** gamma * bce).mean()


def build(width, classes):
    def unit(i, o, s=1):
        return [nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True)]
    layers = unit(4, width, 2) + unit(width, 2 * width, 2) + unit(2 * width, 2 * width)
    layers += [nn.Conv2d(2 * width, classes * 16, 1), nn.PixelShuffle(4)]
    return nn.Sequential(*layers)


def loop(net, optimizer, data, steps, batch, device):
    scans, masks = data
    total = torch.zeros((), device=device)
    for i in range(steps):
        begin = i * batch % len(scans)
        scan, mask = scans[begin : begin + batch], masks[begin : begin + batch]
        with torch.autocast(device, dtype=torch.bfloat16):
            logits = net(scan)
        loss = focal(logits.float(), mask)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.detach()
    return total / steps


def main():
    small = os.environ.get("SMALL") == "1"
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    side, batch, width, steps, classes = (32, 2, 4, 30, 3) if small else (240, 32, 48, 100, 12)
    net = build(width, classes).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    scans = torch.randn(batch * 2, 4, side, side, device=device).contiguous(memory_format=torch.channels_last)
    masks = (torch.rand(batch * 2, classes, side, side, device=device) > 0.97).float()
    masks = masks.contiguous(memory_format=torch.channels_last)
    print("mean focal loss", loop(net, optimizer, (scans, masks), steps, batch, device).item())


if __name__ == "__main__":
    main()
