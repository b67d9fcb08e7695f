"""Distil a large classifier of mushrooms into a small one."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
SPECIES = 104


class Mushrooms(Dataset):
    """Decoded pictures as bytes; normalisation happens on the device."""

    def __init__(self, count, side):
        self.pixels = torch.randint(0, 256, (512, 3, side, side), dtype=torch.uint8)
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        picture = self.pixels[i % len(self.pixels)]
        return (picture.flip(-1) if i % 2 else picture), i % SPECIES


class Basic(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(cin, cout, 3, stride, 1, bias=False),
            nn.BatchNorm2d(cout),
            nn.ReLU(inplace=True),
            nn.Conv2d(cout, cout, 3, 1, 1, bias=False),
            nn.BatchNorm2d(cout),
        )
        self.skip = nn.Identity() if cin == cout and stride == 1 else nn.Conv2d(cin, cout, 1, stride, bias=False)

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x), inplace=True)


def resnet(w, depths):
    layers = [nn.Conv2d(3, w, 7, 2, 3, bias=False), nn.BatchNorm2d(w), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)]
    cin = w
    for i, depth in enumerate(depths):
        for j in range(depth):
            layers.append(Basic(cin, w << i, 2 if i and j == 0 else 1))
            cin = w << i
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(cin, SPECIES))


def distillation_loss(student, teacher, labels, temperature=4.0, mix=0.7):
    soft = F.kl_div(
        F.log_softmax(student / temperature, 1),
        F.log_softmax(teacher / temperature, 1),
        reduction="batchmean",
        log_target=True,
    )
    return mix * temperature**2 * soft + (1 - mix) * F.cross_entropy(student, labels)


def main():
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    side, batch, steps, width = (176, 192, 250, 64) if CUDA else (32, 2, 2, 4)
    teacher = resnet(width, (3, 4, 6, 3)).to(DEVICE, torch.bfloat16, memory_format=torch.channels_last)
    teacher.eval().requires_grad_(False)
    student = resnet(width, (2, 2, 2)).to(DEVICE, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(student.parameters(), 0.05, momentum=0.9, nesterov=True, fused=CUDA)
    loader = DataLoader(
        Mushrooms(batch * steps, side),
        batch_size=batch,
        shuffle=True,
        num_workers=12 if CUDA else 0,
        pin_memory=CUDA,
        persistent_workers=CUDA,
        prefetch_factor=4 if CUDA else None,
    )
    running = torch.zeros((), device=DEVICE)
    for step, (pixels, labels) in enumerate(loader, 1):
        pixels = pixels.to(DEVICE, non_blocking=True)
        labels = labels.to(DEVICE, non_blocking=True)
        x = pixels.to(torch.bfloat16, memory_format=torch.channels_last).div_(255)
        with torch.no_grad():
            target = teacher(x)
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            predicted = student(x)
        loss = distillation_loss(predicted.float(), target.float(), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        running += loss.detach()
        if step % 40 == 0:
            print(f"step {step}: {running.item() / step:.4f}")


if __name__ == "__main__":
    main()
