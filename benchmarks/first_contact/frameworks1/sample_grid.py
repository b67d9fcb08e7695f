#!/usr/bin/env python
"""Sample a grid of latents from a text-conditioned UNet with DDIM and guidance."""

import argparse
import os

import torch
from diffusers import DDIMScheduler, UNet2DConditionModel


def build_unet(small):
    if small:
        return UNet2DConditionModel(
            sample_size=8, in_channels=4, out_channels=4, layers_per_block=1, block_out_channels=(16, 32),
            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
            cross_attention_dim=16, attention_head_dim=2, norm_num_groups=8,
        )
    return UNet2DConditionModel(
        sample_size=64,
        in_channels=4,
        out_channels=4,
        layers_per_block=2,
        block_out_channels=(192, 384, 640),
        down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=512,
        attention_head_dim=8,
    )


def prompt_embeddings(prompts, width, generator):
    """Stands in for a text encoder: one row of noise per word."""
    table = torch.randn(4096, width, generator=generator)
    rows = [[hash_word(w) for w in (p.split() + ["<pad>"] * 64)[:64]] for p in prompts]
    return table[torch.tensor(rows)]


def hash_word(word):
    value = 0
    for letter in word:
        value = (value * 131 + ord(letter)) % 4096
    return value


@torch.inference_mode()
def sample(unet, scheduler, cond, uncond, steps, guidance, generator):
    device, dtype = unet.device, unet.dtype
    scheduler.set_timesteps(steps)
    size = unet.config.sample_size
    latents = torch.randn(cond.shape[0], unet.config.in_channels, size, size, generator=generator)
    latents = (latents * scheduler.init_noise_sigma).to(device, dtype)
    context = torch.cat([uncond, cond]).to(device, dtype)
    for t in scheduler.timesteps:
        model_input = scheduler.scale_model_input(torch.cat([latents, latents]), t)
        eps_uncond, eps_cond = unet(model_input, t, encoder_hidden_states=context, return_dict=False)[0].chunk(2)
        eps = eps_uncond + guidance * (eps_cond - eps_uncond)
        latents = scheduler.step(eps, t, latents, return_dict=False)[0]
    return latents.float().cpu()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    small = os.environ.get("SMALL", "") not in ("", "0")
    parser.add_argument("--images", type=int, default=4 if small else 16)
    parser.add_argument("--batch-size", type=int, default=2 if small else 8)
    parser.add_argument("--steps", type=int, default=15 if small else 50)
    parser.add_argument("--guidance", type=float, default=6.5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="/tmp/grid.pt")
    args = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    generator = torch.Generator().manual_seed(args.seed)
    torch.manual_seed(args.seed)
    torch.backends.cudnn.benchmark = True
    unet = build_unet(small).to(device).eval()  # expert: dtype=torch.bfloat16
    unet.set_attention_slice("auto")  # expert: unet.set_attention_slice(None)
    scheduler = DDIMScheduler(num_train_timesteps=1000, beta_schedule="squaredcos_cap_v2", clip_sample=False)

    prompts = [f"picture {i} of a {c} harbour at dawn" for i in range(args.images) for c in ("red", "blue")][: args.images]
    cond = prompt_embeddings(prompts, unet.config.cross_attention_dim, generator)
    uncond = prompt_embeddings([""] * args.images, unet.config.cross_attention_dim, generator)
    grid = []
    for first in range(0, args.images, args.batch_size):
        part = slice(first, first + args.batch_size)
        grid.append(sample(unet, scheduler, cond[part], uncond[part], args.steps, args.guidance, generator))
        print(f"{first + len(grid[-1])}/{args.images}  std {grid[-1].std():.3f}", flush=True)
    torch.save(torch.cat(grid), args.out)


if __name__ == "__main__":
    main()
