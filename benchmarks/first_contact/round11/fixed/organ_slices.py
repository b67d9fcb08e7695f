"""2-D segmentation of 32 organs on abdominal slices: encoder-decoder with one skip, bf16."""
import logging

import torch
import torch.nn as nn

log = logging.getLogger("organs")


class ConvUnit(nn.Sequential):
    def __init__(self, n_in, n_out, stride=1):
        super().__init__(
            nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False),
            nn.BatchNorm2d(n_out),
            nn.ReLU(inplace=True),
        )


class OrganNet(nn.Module):
    def __init__(self, width=32, organs=32):
        super().__init__()
        self.fine = ConvUnit(8, width)
        self.down = ConvUnit(width, 2 * width, stride=2)
        self.coarse = nn.Sequential(ConvUnit(2 * width, 2 * width), ConvUnit(2 * width, 2 * width))
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.join = ConvUnit(2 * width, width)
        self.head = nn.Conv2d(width, organs, 1)

    def forward(self, x):
        fine = self.fine(x)
        coarse = self.up(self.coarse(self.down(fine)))
        return self.head(self.join(torch.cat([fine, coarse], 1)))


class OrganLoss(nn.Module):
    """Cross entropy; organs that cover few pixels count more."""

    def __init__(self, weights):
        super().__init__()
        self.register_buffer("weights", weights)

    def forward(self, logits, target):
        return nn.functional.cross_entropy(logits.float(), target, weight=self.weights)


class SliceSource:
    """Slabs of 8 neighbouring slices with the organ of each pixel of the middle one."""

    def __init__(self, batch, side, organs, device, pool=3):
        gen = torch.Generator(device).manual_seed(14)
        shape = (pool, batch, 8, side, side)
        slabs = torch.randn(shape, generator=gen, device=device, dtype=torch.bfloat16)
        self.slabs = [slab.to(memory_format=torch.channels_last) for slab in slabs]
        self.organs = torch.randint(0, organs, (pool, batch, side, side), generator=gen, device=device)

    def __getitem__(self, step):
        i = step % len(self.slabs)
        return self.slabs[i], self.organs[i]


def training_step(model, criterion, optimizer, slab, organs):
    with torch.autocast(slab.device.type, torch.bfloat16):
        logits = model(slab)
    loss = criterion(logits, organs)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def main():
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    batch, side, steps = (16, 512, 150) if gpu else (2, 32, 5)
    torch.manual_seed(13)
    torch.backends.cudnn.benchmark = True
    model = OrganNet().to(device, memory_format=torch.channels_last)
    criterion = OrganLoss(torch.linspace(0.5, 1.5, 32)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    source = SliceSource(batch, side, 32, device)
    losses = torch.empty(steps, device=device)
    for step in range(steps):
        losses[step] = training_step(model, criterion, optimizer, *source[step])
    log.info("loss %.4f -> %.4f", losses[0].item(), losses[-1].item())


if __name__ == "__main__":
    main()
