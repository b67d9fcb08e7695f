"""Masked autoencoder pre-training on aerial tiles with accelerate."""

import math
import os
import time
from dataclasses import dataclass, field

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed
from torch.utils.data import DataLoader, Dataset
from transformers import ViTMAEConfig, ViTMAEForPreTraining, get_cosine_schedule_with_warmup

SMALL = os.environ.get("SMALL") == "1"


@dataclass
class TrainConfig:
    tiles: int = 256 if SMALL else 24576
    image_size: int = 32 if SMALL else 224
    patch_size: int = 8 if SMALL else 16
    micro_batch_size: int = 16 if SMALL else 512
    gradient_accumulation_steps: int = 1
    base_lr: float = 1.5e-4
    weight_decay: float = 0.05
    epochs: int = 16
    warmup_updates: int = 40
    num_workers: int = 1 if SMALL else 8
    mixed_precision: str = "no" if SMALL else "bf16"
    encoder: dict = field(
        default_factory=lambda: (
            dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)
            if SMALL
            else dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072)
        )
    )
    decoder: dict = field(
        default_factory=lambda: (
            dict(decoder_hidden_size=32, decoder_num_hidden_layers=1, decoder_num_attention_heads=4)
            if SMALL
            else dict(decoder_hidden_size=512, decoder_num_hidden_layers=8, decoder_num_attention_heads=16)
        )
    )


class AerialTiles(Dataset):
    """Crops of one large uint8 mosaic."""

    def __init__(self, cfg):
        side = 4 * cfg.image_size if SMALL else 4096
        self.mosaic = torch.from_numpy(np.random.default_rng(0).integers(0, 255, (3, side, side), dtype=np.uint8))
        self.size, self.count = cfg.image_size, cfg.tiles

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        y, x = torch.randint(0, self.mosaic.shape[-1] - self.size, (2,)).tolist()
        tile = self.mosaic[:, y : y + self.size, x : x + self.size]
        if torch.rand(()) < 0.5:
            tile = tile.flip(-1)
        return tile.contiguous()


def build_optimizer(model, cfg):
    effective = cfg.micro_batch_size * cfg.gradient_accumulation_steps
    decay = [p for p in model.parameters() if p.requires_grad and p.ndim > 1]
    no_decay = [p for p in model.parameters() if p.requires_grad and p.ndim <= 1]
    return torch.optim.AdamW(
        [{"params": decay, "weight_decay": cfg.weight_decay}, {"params": no_decay, "weight_decay": 0.0}],
        lr=cfg.base_lr * effective / 256,
        betas=(0.9, 0.95),
        fused=True,
    )


def main(cfg: TrainConfig):
    accelerator = Accelerator(
        gradient_accumulation_steps=cfg.gradient_accumulation_steps,
        mixed_precision=cfg.mixed_precision,
        dataloader_config=DataLoaderConfiguration(non_blocking=True),
    )
    set_seed(0)
    loader = DataLoader(
        AerialTiles(cfg),
        batch_size=cfg.micro_batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=cfg.num_workers,
        persistent_workers=True,
        pin_memory=torch.cuda.is_available(),
    )
    model = ViTMAEForPreTraining(
        ViTMAEConfig(
            image_size=cfg.image_size,
            patch_size=cfg.patch_size,
            decoder_intermediate_size=4 * cfg.decoder["decoder_hidden_size"],
            norm_pix_loss=True,
            **cfg.encoder,
            **cfg.decoder,
        )
    )
    optimizer = build_optimizer(model, cfg)
    updates = cfg.epochs * math.ceil(len(loader) / cfg.gradient_accumulation_steps)
    schedule = get_cosine_schedule_with_warmup(optimizer, cfg.warmup_updates, updates)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)

    update, running, start = 0, torch.zeros((), device=accelerator.device), time.time()
    for epoch in range(cfg.epochs):
        model.train()
        for pixels in loader:
            with accelerator.accumulate(model):
                pixels = pixels.float().div_(127.5).sub_(1)
                loss = model(pixel_values=pixels).loss
                accelerator.backward(loss)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            running += loss.detach()
            if accelerator.sync_gradients:
                update += 1
                if update % 20 == 0:
                    mean = running.item() / (20 * cfg.gradient_accumulation_steps)
                    accelerator.print(f"epoch {epoch} update {update} loss {mean:.4f} {time.time() - start:.0f} s")
                    running.zero_()


if __name__ == "__main__":
    main(TrainConfig())
