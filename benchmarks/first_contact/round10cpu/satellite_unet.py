"""U-Net for cloud masks in satellite tiles, with a mixin for segment-wise execution."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class SegmentMixin:
    """Runs a stage of the network as one segment of the graph."""

    use_segments = True  # flaw: needless-checkpointing

    def segment(self, stage, *inputs):
        if self.use_segments and self.training:
            return checkpoint(stage, *inputs, use_reentrant=False)  # flaw: needless-checkpointing
        return stage(*inputs)


class DoubleConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, padding=1),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.layers(x)


class Up(nn.Module):
    def __init__(self, inputs, skip, outputs):
        super().__init__()
        self.up = nn.ConvTranspose2d(inputs, outputs, 2, stride=2)
        self.conv = DoubleConv(outputs + skip, outputs)

    def forward(self, x, skip):
        return self.conv(torch.cat([self.up(x), skip], dim=1))


class CloudUNet(SegmentMixin, nn.Module):
    def __init__(self, bands=4, width=12):
        super().__init__()
        self.inner = DoubleConv(bands, width)
        self.down1 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(width, 2 * width))
        self.down2 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(2 * width, 4 * width))
        self.up1 = Up(4 * width, 2 * width, 2 * width)
        self.up2 = Up(2 * width, width, width)
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        a = self.segment(self.inner, x)
        b = self.segment(self.down1, a)
        c = self.segment(self.down2, b)
        y = self.segment(self.up1, c, b)
        y = self.segment(self.up2, y, a)
        return self.head(y)


def cloud_tiles(count, size, generator):
    coarse = torch.rand(count, 1, 8, 8, generator=generator)
    density = nn.functional.interpolate(coarse, size=(size, size), mode="bicubic")
    tiles = density + 0.2 * torch.randn(count, 4, size, size, generator=generator)
    return tiles, (density > 0.55).float()


def main():
    torch.manual_seed(0)
    tiles, masks = cloud_tiles(160, 96, torch.Generator().manual_seed(0))
    model = CloudUNet().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(3):
        for indices in torch.randperm(len(tiles)).split(4):
            loss = criterion(model(tiles[indices]), masks[indices])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
