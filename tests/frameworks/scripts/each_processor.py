"""A UNet of diffusers' with many attentions, each of which a loop tells to run op by op."""

import torch
from diffusers import UNet2DModel
from diffusers.models.attention_processor import Attention, AttnProcessor


def give_all(net, processor):
    for part in net.modules():
        if isinstance(part, Attention):
            part.set_processor(processor)


def main():
    unet = UNet2DModel(
        sample_size=8,
        block_out_channels=(8, 8),
        layers_per_block=11,  # more attentions than are noted of a line
        attention_head_dim=4,
        norm_num_groups=4,
        down_block_types=("AttnDownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "AttnUpBlock2D"),
    )
    give_all(unet, AttnProcessor())
    optimizer = torch.optim.AdamW(unet.parameters())
    pictures = torch.randn(2, 3, 8, 8)
    for time in range(12):
        loss = unet(pictures, time).sample.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
