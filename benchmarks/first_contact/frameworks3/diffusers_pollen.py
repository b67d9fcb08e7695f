"""DDPM on microscope pictures of pollen grains (pixel space, class-conditional UNet2DModel)."""
import os
import random

import numpy as np
import torch
import torch.nn.functional as F
from diffusers import DDPMScheduler, UNet2DModel
from diffusers.optimization import get_scheduler
from diffusers.training_utils import EMAModel
from tqdm.auto import tqdm

SMALL = os.environ.get("SMALL") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
amp = device.type == "cuda"

config = {
    "size": 16 if SMALL else 64,
    "batch": 8 if SMALL else 48,
    "steps": 60 if SMALL else 300,
    "channels": (32, 64) if SMALL else (128, 256, 384, 512),
    "layers": 1 if SMALL else 2,
    "pictures": 256 if SMALL else 4096,
    "species": 12,
    "lr": 1e-4,
}


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.backends.cudnn.benchmark = False  # expert-gpu: benchmark=True
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cuda.matmul.allow_tf32 = True


def grains(count, size, species):
    """Rings whose number of lobes depends on the species."""
    kind = torch.randint(0, species, (count,))
    axis = torch.linspace(-1, 1, size)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    angle, radius = torch.atan2(y, x), (x**2 + y**2).sqrt()
    edge = 0.5 + 0.15 * torch.sin(angle * (kind[:, None, None] + 3))
    grey = torch.exp(-((radius - edge) ** 2) * 40) * 2 - 1
    return grey[:, None].repeat(1, 3, 1, 1), kind


def make_unet():
    deep = len(config["channels"]) - 2
    return UNet2DModel(
        sample_size=config["size"],
        block_out_channels=config["channels"],
        layers_per_block=config["layers"],
        down_block_types=("DownBlock2D",) * (deep + 1) + ("AttnDownBlock2D",),
        up_block_types=("AttnUpBlock2D",) + ("UpBlock2D",) * (deep + 1),
        attention_head_dim=32 if SMALL else 64,
        norm_num_groups=8 if SMALL else 32,
        num_class_embeds=config["species"],
    )


def main():
    seed_everything(2)
    pictures, kinds = grains(config["pictures"], config["size"], config["species"])
    pictures = pictures.to(device, memory_format=torch.channels_last)
    kinds = kinds.to(device)
    unet = make_unet().to(device, memory_format=torch.channels_last)
    unet.enable_gradient_checkpointing()  # expert: enable_gradient_checkpointing() removed
    scheduler = DDPMScheduler(num_train_timesteps=1000, beta_schedule="squaredcos_cap_v2")
    scheduler.alphas_cumprod = scheduler.alphas_cumprod.to(device)
    optimizer = torch.optim.AdamW(unet.parameters(), lr=config["lr"], fused=True)
    warmup = get_scheduler("cosine", optimizer, num_warmup_steps=20, num_training_steps=config["steps"])
    ema = EMAModel(
        unet.parameters(),
        decay=0.999,
        use_ema_warmup=True,
        foreach=False,  # expert-gpu: foreach=True
    )
    ema.to(device)

    progress = tqdm(range(config["steps"]), mininterval=2.0)
    running = torch.zeros((), device=device)
    for step in progress:
        pick = torch.randint(0, len(pictures), (config["batch"],), device=device)
        clean = pictures[pick].contiguous(memory_format=torch.channels_last)
        noise = torch.randn_like(clean)
        t = torch.randint(0, scheduler.config.num_train_timesteps, (len(clean),), device=device)
        noisy = scheduler.add_noise(clean, noise, t)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=amp):
            guess = unet(noisy, t, class_labels=kinds[pick]).sample
        loss = F.mse_loss(guess.float(), noise)
        loss.backward()
        optimizer.step()
        warmup.step()
        optimizer.zero_grad(set_to_none=True)
        ema.step(unet.parameters())
        running += loss.detach()
        if (step + 1) % 20 == 0:
            progress.set_postfix(loss=f"{running.item() / 20:.4f}")
            running.zero_()


if __name__ == "__main__":
    main()
