"""Grade fundus photographs (16 findings per eye), with a per-batch AUC in the training log."""
import torch
import torch.nn.functional as F
from torch import nn

torch.backends.cudnn.benchmark = True


def auc(scores, truth):
    """Mean over the findings of the area under the ROC curve, from ranks."""
    ranks = scores.argsort(0).argsort(0) + 1
    positive = truth.sum(0)
    negative = len(truth) - positive
    area = ((ranks * truth).sum(0) - positive * (positive + 1) / 2) / (positive * negative).clamp(min=1)
    return area.mean()


class Hook:
    def after_forward(self, logits, truth):
        """Called with the outputs of each step."""

    def after_epoch(self, epoch):
        """Called once per pass."""


class AucLog(Hook):
    def __init__(self):
        self.values = []

    def after_forward(self, logits, truth):
        scores = logits.detach().float()
        self.values.append(auc(scores, truth))

    def after_epoch(self, epoch):
        print(f"epoch {epoch}: batch AUC {torch.stack(self.values).mean().item():.4f}")
        self.values.clear()


class Unit(nn.Module):
    def __init__(self, n_in, n_out, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.norm = nn.BatchNorm2d(n_out)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)), inplace=True)


def grader(width, findings=16):
    return nn.Sequential(
        nn.Conv2d(3, width, 4, stride=4),
        Unit(width, width), Unit(width, 2 * width, 2), Unit(2 * width, 2 * width),
        Unit(2 * width, 4 * width, 2), Unit(4 * width, 4 * width),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, findings),
    )


class Eyes:
    """Photographs in the memory of the device: uint8, channels last."""

    def __init__(self, batches, batch, side, device):
        gen = torch.Generator(device).manual_seed(6)
        shape = (batches, batch, side, side, 3)
        self.photos = torch.randint(0, 256, shape, generator=gen, device=device, dtype=torch.uint8)
        self.truth = (torch.rand(batches, batch, 16, generator=gen, device=device) < 0.3).float()

    def __iter__(self):
        for photos, truth in zip(self.photos, self.truth):
            yield photos.permute(0, 3, 1, 2).to(torch.bfloat16).div_(127.5).sub_(1), truth


class Learner:
    def __init__(self, model, eyes, hooks, device):
        self.model, self.eyes, self.hooks, self.device = model, eyes, hooks, device
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def call(self, event, *args):
        for hook in self.hooks:
            getattr(hook, event)(*args)

    def step(self, photos, truth):
        with torch.autocast(self.device.type, torch.bfloat16):
            logits = self.model(photos)
        loss = F.binary_cross_entropy_with_logits(logits.float(), truth)
        self.call("after_forward", logits, truth)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def fit(self, epochs):
        for epoch in range(epochs):
            for photos, truth in self.eyes:
                self.step(photos, truth)
            self.call("after_epoch", epoch)


def main():
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    batches, batch, side, width, epochs = (40, 512, 128, 96, 4) if gpu else (3, 16, 32, 8, 2)
    torch.manual_seed(5)
    model = grader(width).to(device, memory_format=torch.channels_last)
    Learner(model, Eyes(batches, batch, side, device), [AucLog()], device).fit(epochs)


if __name__ == "__main__":
    main()
