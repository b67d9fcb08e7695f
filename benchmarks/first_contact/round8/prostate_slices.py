"""Prostate MR segmentation: slices with three contrasts, Dice + cross entropy, deep supervision."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("high")


def block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.LeakyReLU(0.01, inplace=True),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.LeakyReLU(0.01, inplace=True),
    )  # fmt: skip


class DeepUNet(nn.Module):
    def __init__(self, base=48, levels=5, classes=3):
        super().__init__()
        widths = [min(base * 2**i, 512) for i in range(levels)]
        self.encoder = nn.ModuleList(block(a, b) for a, b in zip([3, *widths], widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(widths, widths[1:]))
        self.decoder = nn.ModuleList(block(2 * a, a) for a in widths[:-1])
        self.heads = nn.ModuleList(nn.Conv2d(a, classes, 1) for a in widths[:2])

    def forward(self, x):
        skips = []
        for i, enc in enumerate(self.encoder):
            x = enc(F.max_pool2d(x, 2) if i else x)
            skips.append(x)
        outputs = []
        for i in reversed(range(len(self.decoder))):
            x = self.decoder[i](torch.cat([self.up[i](x), skips[i]], dim=1))
            if i < len(self.heads):
                outputs.append(self.heads[i](x))
        return outputs[::-1]


def dice_ce(logits, target):
    logits = logits.float()
    onehot = F.one_hot(target, logits.shape[1]).movedim(-1, 1).to(logits.dtype)
    prob = logits.softmax(dim=1)
    overlap = (prob * onehot).sum(dim=(0, 2, 3))
    dice = (2 * overlap + 1) / (prob.sum(dim=(0, 2, 3)) + onehot.sum(dim=(0, 2, 3)) + 1)
    return F.cross_entropy(logits, target) + 1 - dice.mean()


class SegmentationTrainer:
    def __init__(self, net, batch, side, device):
        self.net, self.batch, self.device = net, batch, device
        self.optimizer = torch.optim.SGD(net.parameters(), 0.01, 0.99, weight_decay=3e-5, nesterov=True, fused=True)
        self.images = torch.randn(8 * batch, 3, side, side, device=device)
        self.masks = torch.randint(0, 3, (8 * batch, side // 8, side // 8), device=device)
        self.masks = self.masks.repeat_interleave(8, 1).repeat_interleave(8, 2)

    def get_batch(self):
        pick = torch.randint(0, len(self.images), (self.batch,), device=self.device)
        return self.images[pick].contiguous(memory_format=torch.channels_last), self.masks[pick]

    def run_iteration(self):
        data, target = self.get_batch()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            full, half = self.net(data)
        loss = dice_ce(full, target) + 0.5 * dice_ce(half, target[:, ::2, ::2])
        del data, target, full, half
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), 12, foreach=True)
        self.optimizer.step()
        torch.cuda.empty_cache()  # flaw: cache-emptied-in-step
        return loss.detach()

    def run_training(self, epochs, iterations):
        for epoch in range(epochs):
            losses = torch.stack([self.run_iteration() for _ in range(iterations)])
            print(f"epoch {epoch}: train loss {losses.mean().item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    if torch.cuda.is_available():
        device = torch.device("cuda")
        net = DeepUNet().to(device, memory_format=torch.channels_last)
        SegmentationTrainer(net, 16, 256, device).run_training(epochs=4, iterations=30)
    else:
        device = torch.device("cpu")
        SegmentationTrainer(DeepUNet(4, 3), 2, 32, device).run_training(epochs=1, iterations=3)
