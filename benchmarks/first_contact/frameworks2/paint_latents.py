"""Makes a batch of pictures with a Stable Diffusion pipeline loaded from a folder."""
import os
import tempfile

import torch
from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel

SMALL = os.environ.get("SMALL") == "1"
CHANNELS = (16, 32) if SMALL else (192, 384)
SIZE = 8 if SMALL else 64
WIDTH = 16 if SMALL else 512


def make(folder):
    torch.manual_seed(0)
    unet = UNet2DConditionModel(
        sample_size=SIZE, in_channels=4, out_channels=4, layers_per_block=1 if SMALL else 2,
        block_out_channels=CHANNELS, cross_attention_dim=WIDTH, attention_head_dim=4 if SMALL else 8,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), norm_num_groups=8,
    )
    vae = AutoencoderKL(
        block_out_channels=(8, 16) if SMALL else (64, 128), latent_channels=4, norm_num_groups=4,
        down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
    )
    StableDiffusionPipeline(
        vae=vae, unet=unet, text_encoder=None, tokenizer=None, scheduler=DDIMScheduler(clip_sample=False),
        safety_checker=None, feature_extractor=None, requires_safety_checker=False,
    ).save_pretrained(folder)


folder = tempfile.mkdtemp()
make(folder)
pipe = StableDiffusionPipeline.from_pretrained(  # expert-gpu: torch_dtype=torch.bfloat16
    folder, text_encoder=None, tokenizer=None, safety_checker=None, feature_extractor=None, requires_safety_checker=False
)
pipe.to("cuda" if torch.cuda.is_available() else "cpu")
pipe.enable_attention_slicing()  # expert: attention_slicing
pipe.vae.enable_slicing()
pipe.set_progress_bar_config(disable=True)

count = 2 if SMALL else 8
words = torch.randn(count, 77, WIDTH)
nothing = torch.randn(count, 77, WIDTH)
for seed in range(3):
    pictures = pipe(
        prompt_embeds=words, negative_prompt_embeds=nothing, num_inference_steps=12 if SMALL else 20,
        guidance_scale=7.5, generator=torch.Generator().manual_seed(seed), output_type="np",
    ).images
    print(seed, pictures.shape, float(pictures.mean()))
