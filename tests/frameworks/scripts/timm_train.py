"""timm's loader and optimizer in a loop of the user's."""

import timm
import torch
from PIL import Image
from timm.data import create_loader
from timm.optim import create_optimizer_v2


class Pictures(torch.utils.data.Dataset):
    def __init__(self):
        self.transform = None

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return self.transform(Image.new("RGB", (40, 40), (index, 9, 9))), index % 10


def main():
    model = timm.create_model("vit_tiny_patch16_224", img_size=32, depth=2, num_classes=10)
    loader = create_loader(
        Pictures(), (3, 32, 32), 4, num_workers=0, use_prefetcher=False, persistent_workers=False
    )
    optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3)
    model.train()
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
