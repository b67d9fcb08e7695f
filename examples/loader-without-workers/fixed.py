"""`slow.py` as one would write it with care: eight processes make the batches, which travel while the last
step is still computed.

    warpline profile examples/loader-without-workers/fixed.py
"""

import random
import tempfile
from pathlib import Path

import torch
from PIL import Image, ImageDraw, ImageEnhance
from torch import nn
from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset

device = "cuda" if torch.cuda.is_available() else "cpu"
# Sizes by device, so that a laptop sees the same picture in seconds.
BATCH, IMAGES, SIDE, WIDTH = (128, 8192, 64, 64) if device == "cuda" else (32, 1024, 32, 8)
DATA = Path(tempfile.gettempdir()) / f"warpline-example-digits-{IMAGES}"


def make_pictures():
    """28 by 28 grey PNG files, one folder a class, like MNIST unpacked."""
    if (DATA / "complete").exists():
        return
    random.seed(0)
    for index in range(IMAGES):
        kind = index % 10
        folder = DATA / str(kind)
        folder.mkdir(parents=True, exist_ok=True)
        image = Image.new("L", (28, 28))
        draw = ImageDraw.Draw(image)
        x, y = random.randint(6, 12), random.randint(4, 8)
        draw.text((x, y), str(kind), fill=random.randint(160, 255))
        image.save(folder / f"{index}.png")
    (DATA / "complete").touch()


class Digits(Dataset):
    """Reads a picture and distorts it, as augmentation code does."""

    def __init__(self, root, side):
        self.files = sorted(root.glob("*/*.png"))
        self.side = side

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        path = self.files[index]
        image = Image.open(path).convert("RGB")
        image = image.resize((self.side + 8, self.side + 8), Image.BICUBIC)
        image = image.rotate(random.uniform(-15, 15), Image.BILINEAR)
        image = ImageEnhance.Contrast(image).enhance(random.uniform(0.8, 1.2))
        left, top = random.randint(0, 8), random.randint(0, 8)
        image = image.crop((left, top, left + self.side, top + self.side))
        pixels = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)
        pixels = pixels.view(self.side, self.side, 3).permute(2, 0, 1).float() / 255
        return (pixels - 0.13) / 0.31, int(path.parent.name)


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.skip = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.skip = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        h = torch.relu(self.bn1(self.conv1(x)))
        h = self.bn2(self.conv2(h))
        return torch.relu(h + self.skip(x))


class ResNet18(nn.Module):
    def __init__(self, width, classes=10):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        blocks, inputs = [], width
        for stage in range(4):
            outputs = width * 2**stage
            blocks += [Block(inputs, outputs, 1 if stage == 0 else 2), Block(outputs, outputs, 1)]
            inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(inputs, classes)

    def forward(self, x):
        h = self.blocks(self.stem(x))
        return self.head(h.mean((2, 3)))


def main():
    torch.manual_seed(0)
    make_pictures()
    loader = DataLoader(
        Digits(DATA, SIDE),
        batch_size=BATCH,
        shuffle=True,
        num_workers=8 if device == "cuda" else 2,
        persistent_workers=True,
        pin_memory=device == "cuda",
    )
    model = ResNet18(WIDTH).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(3):
        for images, labels in loader:
            with record_function("to device"):
                images = images.to(device, non_blocking=True)
                labels = labels.to(device, non_blocking=True)
            with record_function("forward"):
                loss = criterion(model(images), labels)
            with record_function("backward"):
                optimizer.zero_grad()
                loss.backward()
            with record_function("optimizer"):
                optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
