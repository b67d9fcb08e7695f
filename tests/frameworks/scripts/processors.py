"""A UNet of diffusers' whose attention is told to run op by op."""

import torch
from diffusers import UNet2DConditionModel
from diffusers.models.attention_processor import AttnProcessor


def main():
    unet = UNet2DConditionModel(
        sample_size=16,
        block_out_channels=(16, 32),
        layers_per_block=1,
        cross_attention_dim=16,
        attention_head_dim=2,
        norm_num_groups=8,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    )
    unet.set_attn_processor(AttnProcessor())
    optimizer = torch.optim.AdamW(unet.parameters())
    latents, words = torch.randn(2, 4, 16, 16), torch.randn(2, 9, 16)
    for time in range(12):
        loss = unet(latents, time, encoder_hidden_states=words).sample.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
