"""U-Net for nuclei in histology tiles: foreground, border and distance map."""
import torch
import torch.nn.functional as F
from torch import nn

torch.backends.cudnn.benchmark = True
torch.backends.cudnn.allow_tf32 = True


def double_conv(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, channels=(64, 128, 256, 512), outputs=4):
        super().__init__()
        self.down = nn.ModuleList()
        cin = 3
        for c in channels:
            self.down.append(double_conv(cin, c))
            cin = c
        self.up, self.merge = nn.ModuleList(), nn.ModuleList()
        for c in reversed(channels[:-1]):
            self.up.append(nn.ConvTranspose2d(cin, c, 2, stride=2))
            self.merge.append(double_conv(2 * c, c))
            cin = c
        self.head = nn.Conv2d(cin, outputs, 1)

    def forward(self, x):
        skips = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else F.max_pool2d(x, 2))
            skips.append(x)
        skips.pop()
        for up, merge in zip(self.up, self.merge):
            x = merge(torch.cat([up(x), skips.pop()], 1))
        return self.head(x)


def tiles(n, side, device):
    """Stained-looking noise with blobs for labels."""
    image = torch.rand(n, 3, side, side, device=device)
    smooth = F.avg_pool2d(image[:, :1], 15, 1, 7)
    label = (smooth > smooth.mean()).long().squeeze(1)
    border = F.max_pool2d(label[:, None].float(), 3, 1, 1).squeeze(1).long() - label
    return image, label + 2 * border, smooth.squeeze(1)


class Trainer:
    def __init__(self, model, device, lr=1e-3):
        self.device = device
        self.model = model.to(device, memory_format=torch.channels_last)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr, fused=device.type == "cuda")

    def step(self, image, label, distance):
        image = (image - 0.5).contiguous(memory_format=torch.channels_last)
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            out = self.model(image)
            loss = F.cross_entropy(out[:, :3], label)
        loss = loss + F.smooth_l1_loss(out[:, 3].float(), distance)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()


if __name__ == "__main__":
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type == "cuda":
        channels, batch, side, steps = (64, 128, 256, 512), 16, 256, 120
    else:
        channels, batch, side, steps = (4, 8, 16), 2, 32, 2
    trainer = Trainer(UNet(channels), device)
    image, label, distance = tiles(4 * batch, side, device)
    history = []
    for i in range(steps):
        rows = slice(i % 4 * batch, (i % 4 + 1) * batch)
        history.append(trainer.step(image[rows], label[rows], distance[rows]))
    print(f"first {history[0].item():.4f} last {history[-1].item():.4f}")
