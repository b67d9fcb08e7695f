"""A pipeline of diffusers' from a folder."""

import tempfile

import torch
from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel


def saved(folder):
    unet = UNet2DModel(
        sample_size=8,
        block_out_channels=(8, 16),
        layers_per_block=1,
        norm_num_groups=4,
        down_block_types=("DownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "UpBlock2D"),
    )
    DDPMPipeline(unet=unet, scheduler=DDPMScheduler()).save_pretrained(folder)


with tempfile.TemporaryDirectory() as folder:
    saved(folder)
    pipe = DDPMPipeline.from_pretrained(folder)
pipe.set_progress_bar_config(disable=True)
for seed in range(2):
    pictures = pipe(num_inference_steps=8, generator=torch.Generator().manual_seed(seed)).images
