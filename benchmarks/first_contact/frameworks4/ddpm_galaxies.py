"""Unconditional diffusion of galaxy images, after diffusers' `train_unconditional.py`."""
import argparse
import math
import os
import tempfile
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import ProjectConfiguration, set_seed
from diffusers import DDPMScheduler, UNet2DModel
from diffusers.models.attention_processor import Attention, AttnProcessor
from diffusers.optimization import get_scheduler
from diffusers.training_utils import EMAModel

SMALL = os.environ.get("SMALL") == "1"


def parse_args():
    parser = argparse.ArgumentParser(description="Simple example of a training script.")
    parser.add_argument("--resolution", type=int, default=32 if SMALL else 64)
    parser.add_argument("--train_batch_size", type=int, default=1 if SMALL else 48)
    parser.add_argument("--max_train_steps", type=int, default=50 if SMALL else 100)
    parser.add_argument("--learning_rate", type=float, default=1e-4)
    parser.add_argument("--lr_scheduler", type=str, default="cosine")
    parser.add_argument("--lr_warmup_steps", type=int, default=20)
    parser.add_argument("--mixed_precision", default="bf16" if torch.cuda.is_available() else "no")
    parser.add_argument("--prediction_type", default="epsilon", choices=["epsilon", "sample"])
    parser.add_argument("--ddpm_num_steps", type=int, default=1000)
    parser.add_argument("--ddpm_beta_schedule", type=str, default="squaredcos_cap_v2")
    parser.add_argument("--use_ema", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--ema_max_decay", type=float, default=0.9999)
    parser.add_argument("--logging_steps", type=int, default=20)
    return parser.parse_args()


def galaxies(count, resolution, seed=0):
    """Tilted discs with two arms, in [-1, 1]."""
    generator = torch.Generator().manual_seed(seed)
    axis = torch.linspace(-1, 1, resolution)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    angle, tilt, wind = torch.rand(3, count, 1, 1, generator=generator)
    turn = 2 * math.pi * angle
    u = x * turn.cos() + y * turn.sin()
    v = (y * turn.cos() - x * turn.sin()) * (1 + tilt)
    radius = (u**2 + v**2).sqrt()
    arms = 1 + 0.6 * torch.cos(2 * torch.atan2(v, u) + 6 * wind * radius)
    light = torch.exp(-4 * radius) * arms
    colours = 0.5 + 0.5 * torch.rand(count, 3, 1, 1, generator=generator)
    return (light[:, None] * colours).clamp(0, 1) * 2 - 1


def create_model(args):
    widths = (32, 32, 64) if SMALL else (128, 256, 256, 512)
    down = ("AttnDownBlock2D",) * (len(widths) - 1) + ("DownBlock2D",)
    up = ("UpBlock2D",) + ("AttnUpBlock2D",) * (len(widths) - 1)
    if not SMALL:
        down, up = ("DownBlock2D",) + down[1:-1] + ("DownBlock2D",), ("UpBlock2D",) + up[1:-1] + ("UpBlock2D",)
    return UNet2DModel(
        sample_size=args.resolution,
        in_channels=3,
        out_channels=3,
        layers_per_block=1 if SMALL else 2,
        block_out_channels=widths,
        down_block_types=down,
        up_block_types=up,
        attention_head_dim=8 if SMALL else 32,
    )


def set_processors(model, processor):
    for module in model.modules():
        if isinstance(module, Attention):
            module.set_processor(processor)


def main(args, output_dir):
    project = ProjectConfiguration(project_dir=output_dir, logging_dir=str(Path(output_dir, "logs")))
    accelerator = Accelerator(mixed_precision=args.mixed_precision, project_config=project)
    set_seed(0)
    torch.backends.cudnn.benchmark = True

    model = create_model(args)
    set_processors(model, AttnProcessor())  # expert: AttnProcessor2_0()
    model.to(accelerator.device, memory_format=torch.channels_last)

    ema_model = None
    if args.use_ema:
        ema_model = EMAModel(  # expert-gpu: foreach=True
            model.parameters(),
            decay=args.ema_max_decay,
            use_ema_warmup=True,
            inv_gamma=1.0,
            power=0.75,
            model_cls=UNet2DModel,
            model_config=model.config,
        )
        ema_model.to(accelerator.device)

    noise_scheduler = DDPMScheduler(
        num_train_timesteps=args.ddpm_num_steps,
        beta_schedule=args.ddpm_beta_schedule,
        prediction_type=args.prediction_type,
    )
    noise_scheduler.alphas_cumprod = noise_scheduler.alphas_cumprod.to(accelerator.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate, betas=(0.95, 0.999), fused=True)
    lr_scheduler = get_scheduler(
        args.lr_scheduler, optimizer, num_warmup_steps=args.lr_warmup_steps, num_training_steps=args.max_train_steps
    )
    model, optimizer, lr_scheduler = accelerator.prepare(model, optimizer, lr_scheduler)
    images = galaxies(512, args.resolution).to(accelerator.device)

    then = time.perf_counter()
    for global_step in range(1, args.max_train_steps + 1):
        chosen = torch.randint(len(images), (args.train_batch_size,), device=accelerator.device)
        clean_images = images[chosen].contiguous(memory_format=torch.channels_last)
        noise = torch.randn_like(clean_images)
        timesteps = torch.randint(0, args.ddpm_num_steps, (len(clean_images),), device=accelerator.device)
        noisy_images = noise_scheduler.add_noise(clean_images, noise, timesteps)

        with accelerator.accumulate(model):
            model_output = model(noisy_images, timesteps).sample
            target = noise if args.prediction_type == "epsilon" else clean_images
            loss = F.mse_loss(model_output.float(), target)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()

        if ema_model is not None and accelerator.sync_gradients:
            ema_model.step(model.parameters())
        if global_step % args.logging_steps == 0:
            value, now = loss.detach().item(), time.perf_counter()
            each = 1000 * (now - then) / args.logging_steps
            accelerator.print(f"step {global_step}: loss {value:.4f}, {each:.1f} ms a step", flush=True)
            then = now
    accelerator.end_training()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="galaxies-") as folder:
        main(parse_args(), folder)
