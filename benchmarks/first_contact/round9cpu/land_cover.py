"""Land cover segmentation of four-band satellite tiles."""

import torch
from torch import nn
from torch.nn import functional as F

CLASSES = "water forest crop grass urban bare snow wetland road cloud rock sand".split()


class WeightedCrossEntropy(nn.Module):
    def __init__(self, weight, smoothing=0.05):
        super().__init__()
        self.register_buffer("weight", weight)
        self.smoothing = smoothing

    def forward(self, logits, labels):
        probs = torch.softmax(logits, dim=1)  # flaw: hand-written-loss
        log_probs = torch.log(probs + 1e-8)  # flaw: hand-written-loss
        onehot = F.one_hot(labels, logits.shape[1]).permute(0, 3, 1, 2).float()  # flaw: hand-written-loss
        soft = onehot * (1 - self.smoothing) + self.smoothing / logits.shape[1]  # flaw: hand-written-loss
        loss = -(self.weight[None, :, None, None] * soft * log_probs).sum(1)  # flaw: hand-written-loss
        return loss.sum() / self.weight[labels].sum()  # flaw: hand-written-loss


class Segmenter(nn.Module):
    def __init__(self, classes, width=16):
        super().__init__()
        self.enc1 = nn.Conv2d(4, width, 3, stride=2, padding=1)
        self.enc2 = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.mid = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.skip = nn.Conv2d(width, classes, 1)
        self.out = nn.Conv2d(2 * width, classes, 1)

    def forward(self, x):
        a = F.relu(self.enc1(x))
        b = F.relu(self.mid(F.relu(self.enc2(a))))
        y = F.interpolate(self.out(b), scale_factor=2.0, mode="nearest") + self.skip(a)
        return F.interpolate(y, scale_factor=2.0, mode="nearest")


def synthetic_tiles(n, size=128):
    height = F.interpolate(torch.randn(n, 1, 6, 6), (size, size), mode="bicubic").squeeze(1)
    labels = ((height + 2) * 3).long().clamp_(0, len(CLASSES) - 1)
    signature = torch.randn(len(CLASSES), 4)
    bands = signature[labels].permute(0, 3, 1, 2) + 0.3 * torch.randn(n, 4, size, size)
    return bands.contiguous(), labels


def run_epoch(model, criterion, optimizer, bands, labels, batch=8):
    model.train()
    losses = []
    for index in torch.randperm(len(bands)).split(batch):
        loss = criterion(model(bands[index]), labels[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).mean().item()


@torch.inference_mode()
def accuracy(model, bands, labels):
    model.eval()
    return (model(bands).argmax(1) == labels).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(0)
    bands, labels = synthetic_tiles(136)
    count = torch.bincount(labels.flatten(), minlength=len(CLASSES)).float()
    weight = (count.sum() / (count + 1000)).sqrt()
    model = Segmenter(len(CLASSES))
    criterion = WeightedCrossEntropy(weight / weight.mean())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, fused=True)
    for epoch in range(12):
        loss = run_epoch(model, criterion, optimizer, bands[:128], labels[:128])
        print(f"epoch {epoch} loss {loss:.4f} accuracy {accuracy(model, bands[128:], labels[128:]):.3f}")
