#!/usr/bin/env python3
"""Bird classifier with timm's model, optimizer, scheduler and EMA factories."""
import logging
import os
import time
from contextlib import suppress
from functools import partial
from types import SimpleNamespace

import timm
import torch
import yaml
from timm.loss import LabelSmoothingCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from timm.utils import ModelEmaV3, random_seed

from dataset import Birds

_logger = logging.getLogger("train")
torch.backends.cudnn.benchmark = True


def load_args():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "train.yaml")) as f:
        args = SimpleNamespace(**yaml.safe_load(f))
    if os.environ.get("SMALL") == "1":
        args.model, args.img_size, args.batch_size, args.workers = "convnext_atto", 32, 2, 1
        args.train_images, args.epochs, args.log_interval = 200, 8, 20
    return args


def main():
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    args = load_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    random_seed(42)

    model = timm.create_model(args.model, num_classes=args.num_classes, drop_path_rate=args.drop_path)
    model.to(device)
    if args.channels_last:
        model.to(memory_format=torch.channels_last)

    optimizer = create_optimizer_v2(
        model, opt=args.opt, lr=args.lr, weight_decay=args.weight_decay, **args.opt_kwargs
    )
    amp_autocast = suppress
    if args.amp:
        amp_autocast = partial(torch.autocast, device_type=device.type, dtype=getattr(torch, args.amp_dtype))

    model_ema = None
    if args.model_ema:
        model_ema = ModelEmaV3(
            model,
            decay=args.model_ema_decay,
            device="cpu" if args.model_ema_force_cpu else None,
        )

    loader = torch.utils.data.DataLoader(
        Birds(args.train_images, args.num_classes, args.img_size),
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=args.workers,
        pin_memory=args.pin_mem and device.type == "cuda",
        persistent_workers=True,
    )
    lr_scheduler, num_epochs = create_scheduler_v2(
        optimizer,
        sched=args.sched,
        num_epochs=args.epochs,
        warmup_epochs=args.warmup_epochs,
        updates_per_epoch=len(loader),
        step_on_epochs=False,
    )
    train_loss_fn = LabelSmoothingCrossEntropy(smoothing=args.smoothing).to(device)

    for epoch in range(num_epochs):
        train_one_epoch(epoch, model, loader, optimizer, train_loss_fn, args, device, lr_scheduler, amp_autocast, model_ema)


def train_one_epoch(epoch, model, loader, optimizer, loss_fn, args, device, lr_scheduler, amp_autocast, model_ema):
    model.train()
    num_updates = epoch * len(loader)
    start = time.time()
    for batch_idx, (input, target) in enumerate(loader):
        input = input.to(device, non_blocking=True)
        target = target.to(device, non_blocking=True)
        if args.channels_last:
            input = input.contiguous(memory_format=torch.channels_last)

        with amp_autocast():
            output = model(input)
            loss = loss_fn(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        num_updates += 1
        if model_ema is not None:
            model_ema.update(model, step=num_updates)
        lr_scheduler.step_update(num_updates=num_updates)

        if batch_idx % args.log_interval == 0:
            lr = optimizer.param_groups[0]["lr"]
            rate = (batch_idx + 1) * args.batch_size / (time.time() - start)
            _logger.info(f"Train: {epoch} [{batch_idx:>4d}/{len(loader)}] loss {loss.item():.3f} lr {lr:.2e} {rate:.0f}/s")
    lr_scheduler.step(epoch + 1)


if __name__ == "__main__":
    main()
