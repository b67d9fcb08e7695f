# embeds a stream of tiles with a frozen network; results go back in blocks
import os
import torch
from torch import nn

SMALL = os.environ.get("SMALL") == "1"
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.backends.cudnn.benchmark = True
side, batch, steps, c = (16, 2, 30, 4) if SMALL else (160, 128, 100, 96)


def unit(i, o, s):
    return nn.Sequential(nn.Conv2d(i, o, 3, s, 1), nn.ReLU(inplace=True))


def stream(buffers, count):
    for i in range(count):
        yield buffers[i % len(buffers)]


def embed(net, tiles, count):
    kept = torch.empty(count * batch, 4 * c, dtype=torch.bfloat16, device=dev)
    with torch.inference_mode(), torch.autocast(dev.type, dtype=torch.bfloat16):
        for i, host in enumerate(tiles):
            x = host.to(dev, non_blocking=True).permute(0, 3, 1, 2).to(torch.bfloat16).mul_(1 / 255)
            kept[i * batch : (i + 1) * batch] = net(x)
    return kept.float().cpu()


def main():
    net = nn.Sequential(unit(3, c, 2), unit(c, 2 * c, 1), unit(2 * c, 2 * c, 2), unit(2 * c, 4 * c, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    net = net.to(dev, memory_format=torch.channels_last).to(torch.bfloat16).eval()
    buffers = [torch.randint(0, 256, (batch, side, side, 3), dtype=torch.uint8) for _ in range(4)]
    if dev.type == "cuda":
        buffers = [b.pin_memory() for b in buffers]
    out = embed(net, stream(buffers, steps), steps)
    print(tuple(out.shape), out.norm(dim=1).mean().item())


main()
