"""timm's loader and optimizer in a loop of the user's."""

import argparse

import timm
import torch
from PIL import Image
from timm.data import create_loader
from timm.layers import set_fused_attn
from timm.optim import create_optimizer_v2
from timm.utils import ModelEmaV2, ModelEmaV3


class Pictures(torch.utils.data.Dataset):
    def __init__(self):
        self.transform = None

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return self.transform(Image.new("RGB", (40, 40), (index, 9, 9))), index % 10


def main():
    set_fused_attn(False)
    model = timm.create_model("vit_tiny_patch16_224", img_size=32, depth=2, num_classes=10)
    parser = argparse.ArgumentParser()
    parser.add_argument("--pin-mem", action="store_true", default=False)
    common = {"pin_memory": parser.parse_args().pin_mem, "num_workers": 0}
    loader = create_loader(
        Pictures(), (3, 32, 32), 4, use_prefetcher=False, persistent_workers=False, **common
    )
    optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3)
    averages = ModelEmaV2(model, device="cpu"), ModelEmaV3(model, 0.99, device=torch.device("cpu"))
    model.train()
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for average in averages:
            average.update(model)


if __name__ == "__main__":
    main()
