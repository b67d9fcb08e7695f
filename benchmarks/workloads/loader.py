"""Images decoded and augmented in the training process, copied from pageable memory."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = "cuda" if torch.cuda.is_available() else "cpu"
SIZE, BATCH = (160, 64) if device == "cuda" else (64, 16)


class Images(Dataset):
    def __len__(self):
        return 200 * BATCH

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        image = torch.randint(0, 256, (3, SIZE + 32, SIZE + 32), generator=generator, dtype=torch.uint8)
        image = image.float().div(255)[:, 16:-16, 16:-16]
        image = nn.functional.avg_pool2d(image[None], 3, 1, 1)[0]
        return (image - 0.45) / 0.22, index % 10


def main():
    torch.manual_seed(0)
    loader = DataLoader(Images(), batch_size=BATCH)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    ).to(device)  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
