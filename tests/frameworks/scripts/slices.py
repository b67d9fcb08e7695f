"""A UNet of diffusers' that computes its attention in slices."""

import torch
from diffusers import UNet2DConditionModel

unet = UNet2DConditionModel(
    sample_size=8,
    block_out_channels=(16, 32),
    layers_per_block=1,
    cross_attention_dim=16,
    attention_head_dim=2,
    norm_num_groups=8,
    down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
).eval()
unet.set_attention_slice("auto")
latents, words = torch.randn(2, 4, 8, 8), torch.randn(2, 9, 16)
for time in range(12):
    with torch.no_grad():
        latents = unet(latents, time, encoder_hidden_states=words).sample
