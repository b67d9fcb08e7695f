import argparse
import os

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed
from diffusers import DDPMScheduler, DiTTransformer2DModel
from diffusers.optimization import get_scheduler
from diffusers.training_utils import EMAModel

from latents import LatentShards

SMALL = os.environ.get("SMALL") == "1"


def parse_args():
    parser = argparse.ArgumentParser(description="Class-conditional DiT on cached VAE latents.")
    parser.add_argument("--resolution", type=int, default=8 if SMALL else 32, help="Side of the latents.")
    parser.add_argument("--num_layers", type=int, default=2 if SMALL else 12)
    parser.add_argument("--num_attention_heads", type=int, default=2 if SMALL else 6)
    parser.add_argument("--attention_head_dim", type=int, default=16 if SMALL else 64)
    parser.add_argument("--num_classes", type=int, default=10 if SMALL else 1000)
    parser.add_argument("--train_batch_size", type=int, default=4 if SMALL else 64)  # flaw: small-batch|launch-bound
    parser.add_argument("--num_epochs", type=int, default=6)
    parser.add_argument("--dataloader_num_workers", type=int, default=1 if SMALL else 6)
    parser.add_argument("--learning_rate", type=float, default=1e-4)
    parser.add_argument("--lr_scheduler", type=str, default="constant_with_warmup")
    parser.add_argument("--lr_warmup_steps", type=int, default=500)
    parser.add_argument("--max_grad_norm", type=float, default=1.0)
    parser.add_argument("--mixed_precision", type=str, default="no" if SMALL else "bf16", choices=["no", "fp16", "bf16"])
    parser.add_argument("--use_ema", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--ema_max_decay", type=float, default=0.9999)
    parser.add_argument("--dynamo_backend", type=str, default="no", choices=["no", "eager", "inductor"])  # flaw: launch-bound
    parser.add_argument("--log_every", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main(args):
    accelerator = Accelerator(
        mixed_precision=args.mixed_precision,
        dynamo_backend=args.dynamo_backend,
        dataloader_config=DataLoaderConfiguration(non_blocking=True),
    )
    set_seed(args.seed)

    model = DiTTransformer2DModel(
        num_attention_heads=args.num_attention_heads,
        attention_head_dim=args.attention_head_dim,
        in_channels=4,
        out_channels=4,
        num_layers=args.num_layers,
        sample_size=args.resolution,
        patch_size=2,
        num_embeds_ada_norm=args.num_classes,
    )
    noise_scheduler = DDPMScheduler(num_train_timesteps=1000, beta_schedule="linear", prediction_type="epsilon")

    dataset = LatentShards(512 if SMALL else 65536, args.resolution, args.num_classes)
    train_dataloader = torch.utils.data.DataLoader(
        dataset,
        batch_size=args.train_batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=args.dataloader_num_workers,
        persistent_workers=True,
        pin_memory=torch.cuda.is_available(),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate, weight_decay=0.0, fused=True)
    lr_scheduler = get_scheduler(
        args.lr_scheduler,
        optimizer=optimizer,
        num_warmup_steps=args.lr_warmup_steps,
        num_training_steps=args.num_epochs * len(train_dataloader),
    )
    model, optimizer, train_dataloader, lr_scheduler = accelerator.prepare(
        model, optimizer, train_dataloader, lr_scheduler
    )
    if args.use_ema:
        ema_model = EMAModel(  # flaw: parameter-loop
            accelerator.unwrap_model(model).parameters(),
            decay=args.ema_max_decay,
            use_ema_warmup=True,
            inv_gamma=1.0,
            power=0.75,
        )
        ema_model.to(accelerator.device)

    global_step = 0
    for epoch in range(args.num_epochs):
        model.train()
        for latents, labels in train_dataloader:
            noise = torch.randn_like(latents)
            timesteps = torch.randint(
                0, noise_scheduler.config.num_train_timesteps, (latents.shape[0],), device=latents.device
            )
            noisy_latents = noise_scheduler.add_noise(latents, noise, timesteps)
            pred = model(noisy_latents, timestep=timesteps, class_labels=labels).sample
            loss = F.mse_loss(pred.float(), noise)

            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), args.max_grad_norm)
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
            if args.use_ema:
                ema_model.step(model.parameters())

            global_step += 1
            if global_step % args.log_every == 0:
                accelerator.print(f"epoch {epoch} step {global_step} loss {loss.item():.4f} lr {lr_scheduler.get_last_lr()[0]:.1e}")


if __name__ == "__main__":
    main(parse_args())
