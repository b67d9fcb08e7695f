"""Unconditional DDPM on small pictures, after the usual diffusers recipe."""
import os
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from diffusers import DDPMScheduler, UNet2DModel
from diffusers.optimization import get_cosine_schedule_with_warmup
from diffusers.training_utils import EMAModel
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"


@dataclass
class TrainingConfig:
    image_size: int = 16 if SMALL else 64
    train_batch_size: int = 2 if SMALL else 32
    num_epochs: int = 1
    steps_per_epoch: int = 30 if SMALL else 80
    learning_rate: float = 1e-4
    lr_warmup_steps: int = 10
    log_steps: int = 20
    mixed_precision: str = "no"  # expert: mixed_precision="bf16"
    seed: int = 0


class Wings(Dataset):
    """Symmetric random gratings in [-1, 1]."""

    def __init__(self, count, size):
        g = torch.Generator().manual_seed(9)
        axis = torch.linspace(-1, 1, size)
        y, x = torch.meshgrid(axis, axis.abs(), indexing="ij")
        freq = torch.rand(256, 3, 2, generator=g) * 18
        self.images = torch.sin(freq[..., :1, None] * x + freq[..., 1:, None] * y)
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return self.images[i % len(self.images)]


def make_unet(config):
    if SMALL:
        return UNet2DModel(
            sample_size=config.image_size, in_channels=3, out_channels=3, layers_per_block=1,
            block_out_channels=(16, 32), norm_num_groups=8, attention_head_dim=8,
            down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        )
    return UNet2DModel(
        sample_size=config.image_size,
        in_channels=3,
        out_channels=3,
        layers_per_block=2,
        block_out_channels=(128, 256, 256, 512),
        attention_head_dim=64,
        down_block_types=("DownBlock2D", "DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D", "UpBlock2D"),
    )


def train_loop(config, model, noise_scheduler, optimizer, train_dataloader, lr_scheduler):
    accelerator = Accelerator(
        mixed_precision=config.mixed_precision, dataloader_config=DataLoaderConfiguration(non_blocking=True)
    )
    ema_model = EMAModel(model.parameters(), decay=0.9995, use_ema_warmup=True, power=0.75)  # expert: foreach=True
    ema_model.to(accelerator.device)
    model.to(accelerator.device)  # expert: memory_format=torch.channels_last
    model, optimizer, train_dataloader, lr_scheduler = accelerator.prepare(
        model, optimizer, train_dataloader, lr_scheduler
    )
    global_step = 0
    for epoch in range(config.num_epochs):
        loss_sum = torch.zeros((), device=accelerator.device)
        for clean_images in train_dataloader:
            noise = torch.randn_like(clean_images)
            timesteps = torch.randint(
                0, noise_scheduler.config.num_train_timesteps, (clean_images.shape[0],), device=clean_images.device
            )
            noisy_images = noise_scheduler.add_noise(clean_images, noise, timesteps)
            noise_pred = model(noisy_images, timesteps, return_dict=False)[0]
            loss = F.mse_loss(noise_pred.float(), noise)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
            ema_model.step(model.parameters())
            loss_sum += loss.detach()
            global_step += 1
            if global_step % config.log_steps == 0:
                value = loss_sum.item() / config.log_steps
                accelerator.print(f"epoch {epoch} step {global_step} loss {value:.4f}")
                loss_sum.zero_()
    return ema_model


def main():
    config = TrainingConfig()
    torch.manual_seed(config.seed)
    torch.backends.cudnn.benchmark = True
    model = make_unet(config)
    dataset = Wings(config.train_batch_size * config.steps_per_epoch, config.image_size)
    train_dataloader = DataLoader(
        dataset, batch_size=config.train_batch_size, shuffle=True, num_workers=0 if SMALL else 4, pin_memory=True
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate, fused=True)
    lr_scheduler = get_cosine_schedule_with_warmup(
        optimizer, num_warmup_steps=config.lr_warmup_steps, num_training_steps=len(train_dataloader) * config.num_epochs
    )
    train_loop(config, model, DDPMScheduler(num_train_timesteps=1000), optimizer, train_dataloader, lr_scheduler)


if __name__ == "__main__":
    main()
