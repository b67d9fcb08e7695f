"""Trains GPT-2 on melodies with a bare accelerate loop (in the manner of `run_clm_no_trainer.py`)."""
import os
import time

import torch
from accelerate import Accelerator
from accelerate.logging import get_logger
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset
from transformers import get_scheduler

from melody_lm_lib import corpus, make_model, parameter_groups

logger = get_logger(__name__)
SMALL = os.environ.get("SMALL") == "1"

OPTIONS = dict(
    seed=23,
    model=dict(
        vocab=32768,
        events=128 if SMALL else 1024,
        width=128 if SMALL else 1024,
        depth=2 if SMALL else 16,
    ),
    accelerator=dict(
        mixed_precision="bf16" if torch.cuda.is_available() else "no",
        gradient_accumulation_steps=1,
    ),
    optimizer=dict(
        lr=3e-4,
        betas=(0.9, 0.95),
        fused=True,
    ),
    weight_decay=0.1,
    batch=1 if SMALL else 6,
    melodies=300 if SMALL else 4000,
    steps=150 if SMALL else 120,
    clip=1.0,
    log_every=25,
)


def batches(loader):
    while True:
        yield from loader


def train(options):
    accelerator = Accelerator(**options["accelerator"])
    set_seed(options["seed"])
    model = make_model(options["model"])
    optimizer = torch.optim.AdamW(parameter_groups(model, options["weight_decay"]), **options["optimizer"])
    scheduler = get_scheduler("cosine", optimizer, num_warmup_steps=10, num_training_steps=options["steps"])
    tokens = corpus(options["melodies"], options["model"]["events"], options["seed"])
    loader = DataLoader(
        TensorDataset(tokens), batch_size=options["batch"], shuffle=True, drop_last=True,
        pin_memory=torch.cuda.is_available(),
    )
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    size = sum(p.numel() for p in model.parameters())
    accelerator.print(f"{size / 1e6:.1f} M parameters on {accelerator.device}", flush=True)

    model.train()
    then = time.perf_counter()
    for step, (ids,) in enumerate(batches(loader)):
        with accelerator.accumulate(model):
            loss = model(input_ids=ids, labels=ids).loss
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), options["clip"])
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        if step % options["log_every"] == 0:
            mean = accelerator.gather(loss.detach()).mean().item()
            now = time.perf_counter()
            each = 1000 * (now - then) / options["log_every"]
            accelerator.print(f"step {step}: loss {mean:.3f}, {each:.1f} ms a step", flush=True)
            then = now
        if step + 1 == options["steps"]:
            break
    accelerator.end_training()


if __name__ == "__main__":
    train(OPTIONS)
