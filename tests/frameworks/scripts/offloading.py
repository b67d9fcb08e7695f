"""A pipeline of diffusers' whose models are moved for each call; on a CPU as if that were the device."""

import torch
from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel
from diffusers.pipelines import pipeline_utils

pipeline_utils.get_device = lambda: "cpu:0"  # without an index it is refused
unet = UNet2DModel(
    sample_size=8,
    block_out_channels=(8, 16),
    layers_per_block=1,
    norm_num_groups=4,
    down_block_types=("DownBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "UpBlock2D"),
)
pipe = DDPMPipeline(unet=unet, scheduler=DDPMScheduler())
pipe.set_progress_bar_config(disable=True)
pipe.enable_model_cpu_offload()
for seed in range(12):
    pictures = pipe(num_inference_steps=2, generator=torch.Generator().manual_seed(seed)).images
