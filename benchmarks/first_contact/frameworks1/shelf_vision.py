"""ViT for shelf photos, trained with the Hugging Face Trainer."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification

ON_GPU = torch.cuda.is_available()
SMALL = "SMALL" in os.environ and os.environ["SMALL"] != "0"


class ShelfPhotos(Dataset):
    """Photos are held as uint8; a sample is a random crop of one, perhaps mirrored."""

    mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1) * 255
    std = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1) * 255

    def __init__(self, count: int, classes: int, stored: int, crop: int) -> None:
        g = torch.Generator().manual_seed(11)
        self.labels = torch.randint(classes, (count,), generator=g)
        self.pool = torch.randint(0, 256, (512, 3, stored, stored), dtype=torch.uint8, generator=g)
        self.crop = crop

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> dict[str, Any]:
        photo = self.pool[index % len(self.pool)]
        top, left = torch.randint(photo.shape[-1] - self.crop + 1, (2,)).tolist()
        photo = photo[:, top : top + self.crop, left : left + self.crop]
        if torch.rand(()) < 0.5:
            photo = photo.flip(-1)
        return {"pixel_values": (photo.float() - self.mean) / self.std, "labels": int(self.labels[index])}


def collate(samples: list[dict[str, Any]]) -> dict[str, Tensor]:
    return {
        "pixel_values": torch.stack([s["pixel_values"] for s in samples]),
        "labels": torch.tensor([s["labels"] for s in samples]),
    }


def training_arguments() -> TrainingArguments:
    return TrainingArguments(
        output_dir="/tmp/shelf_vision",
        max_steps=30 if SMALL else 100,
        per_device_train_batch_size=4 if SMALL else 256,
        learning_rate=5e-4,
        weight_decay=0.05,
        warmup_steps=10,
        lr_scheduler_type="cosine",
        bf16=ON_GPU,
        optim="adamw_torch_fused",
        torch_compile=ON_GPU,
        dataloader_num_workers=0 if SMALL else 10,
        dataloader_persistent_workers=not SMALL,
        dataloader_prefetch_factor=None if SMALL else 4,
        dataloader_drop_last=True,
        accelerator_config={"non_blocking": True},
        remove_unused_columns=False,
        logging_steps=25,
        logging_nan_inf_filter=False,
        save_strategy="no",
        report_to="none",
    )


def build_model(classes: int, crop: int) -> ViTForImageClassification:
    width = 64 if SMALL else 768
    return ViTForImageClassification(
        ViTConfig(
            image_size=crop,
            patch_size=8,
            hidden_size=width,
            intermediate_size=4 * width,
            num_hidden_layers=2 if SMALL else 6,
            num_attention_heads=width // 64,
            num_labels=classes,
        )
    )


def main() -> None:
    crop = 32 if SMALL else 96
    photos = ShelfPhotos(count=200 if SMALL else 40_000, classes=120, stored=crop + 16, crop=crop)
    trainer = Trainer(
        model=build_model(120, crop),
        args=training_arguments(),
        train_dataset=photos,
        data_collator=collate,
    )
    outcome = trainer.train()
    print({k: round(v, 3) for k, v in outcome.metrics.items()})


if __name__ == "__main__":
    main()
