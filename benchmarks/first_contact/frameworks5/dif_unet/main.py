"""Unconditional DDPM training of a UNet2DModel on 64x64 images (diffusers + accelerate)."""
import argparse
import os

import numpy as np
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from diffusers import DDPMScheduler, UNet2DModel
from diffusers.optimization import get_scheduler
from diffusers.training_utils import EMAModel
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"


def parse_args():
    parser = argparse.ArgumentParser(description="DDPM training script.")
    parser.add_argument("--resolution", type=int, default=16 if SMALL else 64)
    parser.add_argument("--train_batch_size", type=int, default=2 if SMALL else 64)
    parser.add_argument("--num_epochs", type=int, default=2 if SMALL else 10)
    parser.add_argument("--num_images", type=int, default=16 if SMALL else 12800)
    parser.add_argument("--dataloader_num_workers", type=int, default=2 if SMALL else 6)
    parser.add_argument("--learning_rate", type=float, default=1e-4)
    parser.add_argument("--lr_warmup_steps", type=int, default=500)
    parser.add_argument("--adam_weight_decay", type=float, default=1e-6)
    parser.add_argument("--mixed_precision", type=str, default="bf16", choices=["no", "fp16", "bf16"])
    parser.add_argument("--ddpm_num_steps", type=int, default=1000)
    parser.add_argument("--ema_max_decay", type=float, default=0.9999)
    parser.add_argument("--ema_inv_gamma", type=float, default=1.0)
    parser.add_argument("--ema_power", type=float, default=3 / 4)
    parser.add_argument("--logging_steps", type=int, default=100)
    return parser.parse_args()


class ImageArray(Dataset):
    """uint8 images in memory: flipped at random, scaled to [-1, 1]."""

    def __init__(self, count, resolution):
        rng = np.random.default_rng(0)
        self.images = rng.integers(0, 256, (count, 3, resolution, resolution), dtype=np.uint8)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image = torch.from_numpy(self.images[i])
        if torch.rand(()) < 0.5:
            image = image.flip(-1)
        return {"input": image.float() / 127.5 - 1.0}


def build_unet(resolution):
    if SMALL:
        return UNet2DModel(
            sample_size=resolution,
            block_out_channels=(32, 32),
            layers_per_block=1,
            norm_num_groups=8,
            down_block_types=("DownBlock2D", "AttnDownBlock2D"),
            up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        )
    return UNet2DModel(
        sample_size=resolution,
        in_channels=3,
        out_channels=3,
        layers_per_block=2,
        attention_head_dim=64,
        block_out_channels=(128, 128, 256, 256, 512, 512),
        down_block_types=(
            "DownBlock2D",
            "DownBlock2D",
            "DownBlock2D",
            "DownBlock2D",
            "AttnDownBlock2D",
            "DownBlock2D",
        ),
        up_block_types=(
            "UpBlock2D",
            "AttnUpBlock2D",
            "UpBlock2D",
            "UpBlock2D",
            "UpBlock2D",
            "UpBlock2D",
        ),
    )


def main(args):
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = True
    accelerator = Accelerator(mixed_precision=args.mixed_precision)

    model = build_unet(args.resolution)
    model.to(accelerator.device, memory_format=torch.channels_last)

    ema_model = EMAModel(  # flaw: parameter-loop
        model.parameters(),
        decay=args.ema_max_decay,
        use_ema_warmup=True,
        inv_gamma=args.ema_inv_gamma,
        power=args.ema_power,
        model_cls=UNet2DModel,
        model_config=model.config,
    )
    ema_model.to(accelerator.device)

    noise_scheduler = DDPMScheduler(num_train_timesteps=args.ddpm_num_steps, beta_schedule="linear")
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=args.learning_rate,
        betas=(0.95, 0.999),
        weight_decay=args.adam_weight_decay,
        eps=1e-8,
        fused=True,
    )
    train_dataloader = DataLoader(
        ImageArray(args.num_images, args.resolution),
        batch_size=args.train_batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=args.dataloader_num_workers,
        persistent_workers=True,
        pin_memory=torch.cuda.is_available(),
    )
    lr_scheduler = get_scheduler(
        "cosine",
        optimizer=optimizer,
        num_warmup_steps=args.lr_warmup_steps,
        num_training_steps=len(train_dataloader) * args.num_epochs,
    )
    model, optimizer, lr_scheduler = accelerator.prepare(model, optimizer, lr_scheduler)

    global_step = 0
    for epoch in range(args.num_epochs):
        model.train()
        for batch in train_dataloader:
            clean_images = batch["input"].to(
                accelerator.device, non_blocking=True, memory_format=torch.channels_last
            )
            # Sample noise that we'll add to the images
            noise = torch.randn(clean_images.shape).to(clean_images.device)  # flaw: tensor-made-on-host
            bsz = clean_images.shape[0]
            timesteps = torch.randint(
                0, noise_scheduler.config.num_train_timesteps, (bsz,), device=clean_images.device
            )
            noisy_images = noise_scheduler.add_noise(clean_images, noise, timesteps)

            model_output = model(noisy_images, timesteps).sample
            loss = F.mse_loss(model_output.float(), noise.float())
            accelerator.backward(loss)
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
            ema_model.step(model.parameters())

            global_step += 1
            if global_step % args.logging_steps == 0:
                accelerator.print(f"epoch {epoch} step {global_step} loss {loss.detach().item():.4f}")
    accelerator.print("ema decay", ema_model.cur_decay_value)


if __name__ == "__main__":
    main(parse_args())
