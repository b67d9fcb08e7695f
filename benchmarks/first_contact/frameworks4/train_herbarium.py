#!/usr/bin/env python3
"""Herbarium sheets: a trimmed timm `train.py` for made-up leaf images.

Only the options that we use are left.
"""
import argparse
import logging
import os
import tempfile
import time
from contextlib import nullcontext

import timm
import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2, optimizer_kwargs
from timm.scheduler import create_scheduler_v2
from timm.utils import AverageMeter, ModelEmaV3, random_seed, setup_default_logging

SMALL = os.environ.get("SMALL") == "1"
CUDA = torch.cuda.is_available()
_logger = logging.getLogger("train")

parser = argparse.ArgumentParser(description="Herbarium training")
group = parser.add_argument_group("Model parameters")
group.add_argument("--model", default="resnet18" if SMALL else "resnet50", metavar="MODEL")
group.add_argument("--num-classes", type=int, default=64)
group.add_argument("--img-size", type=int, default=64 if SMALL else 224)
group.add_argument("--drop-path", type=float, default=0.05)
group.add_argument("--grad-checkpointing", action=argparse.BooleanOptionalAction, default=True)  # expert: grad_checkpointing=False
group.add_argument("--channels-last", action=argparse.BooleanOptionalAction, default=False)  # expert-gpu: channels_last=True
group = parser.add_argument_group("Optimizer parameters")
group.add_argument("--opt", default="sgd", metavar="OPTIMIZER")
group.add_argument("--momentum", type=float, default=0.9)
group.add_argument("--weight-decay", type=float, default=2e-5)
group.add_argument("--lr", type=float, default=0.1)
group.add_argument("--sched", default="cosine")
group.add_argument("--epochs", type=int, default=2)
group.add_argument("--steps", type=int, default=40 if SMALL else 60, help="steps of an epoch")
group.add_argument("-b", "--batch-size", type=int, default=8 if SMALL else 192)
group = parser.add_argument_group("Regularization parameters")
group.add_argument("--mixup", type=float, default=0.2)
group.add_argument("--smoothing", type=float, default=0.1)
group = parser.add_argument_group("Model exponential moving average")
group.add_argument("--model-ema", action=argparse.BooleanOptionalAction, default=True)
group.add_argument("--model-ema-device", default="cpu")  # expert-gpu: model_ema_device=None
group.add_argument("--model-ema-decay", type=float, default=0.9998)
group = parser.add_argument_group("Misc")
group.add_argument("--amp", action=argparse.BooleanOptionalAction, default=CUDA)
group.add_argument("--seed", type=int, default=42)
group.add_argument("--log-interval", type=int, default=20)
group.add_argument("--output", default="", metavar="PATH")


class LeafBatches:
    """Keeps some images on the device; each batch is flipped and shifted there."""

    def __init__(self, args, device, pool=768):
        generator = torch.Generator().manual_seed(args.seed)
        pool = 256 if SMALL else pool
        self.labels = torch.randint(args.num_classes, (pool,), generator=generator).to(device)
        images = torch.randn(pool, 3, args.img_size, args.img_size, generator=generator)
        self.images = images.to(device) + self.labels[:, None, None, None] / args.num_classes
        if args.channels_last:
            self.images = self.images.contiguous(memory_format=torch.channels_last)
        self.size, self.steps = args.batch_size, args.steps

    def __iter__(self):
        for _ in range(self.steps):
            chosen = torch.randint(len(self.images), (self.size,)).to(self.images.device, non_blocking=True)
            images = self.images[chosen]
            if torch.rand(()) < 0.5:
                images = images.flip(3)
            yield images, self.labels[chosen]


def train_one_epoch(epoch, model, loader, optimizer, loss_fn, mixup_fn, autocast, model_ema, scheduler, args):
    losses = AverageMeter()
    model.train()
    then = time.perf_counter()
    for index, (images, target) in enumerate(loader):
        images, target = mixup_fn(images, target)
        with autocast():
            loss = loss_fn(model(images), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        update = epoch * args.steps + index + 1
        if model_ema is not None:
            model_ema.update(model, step=update)
        scheduler.step_update(update)
        if index % args.log_interval == args.log_interval - 1:
            losses.update(loss.item(), images.size(0))
            now = time.perf_counter()
            each = 1000 * (now - then) / args.log_interval
            _logger.info(f"Train: {epoch} [{index + 1:>3d}/{args.steps}]  Loss: {losses.val:.3f} ({losses.avg:.3f})  {each:.1f} ms")
            then = now
    return losses.avg


def main():
    setup_default_logging()
    args = parser.parse_args()
    random_seed(args.seed)
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if CUDA else "cpu")

    model = timm.create_model(args.model, num_classes=args.num_classes, drop_path_rate=args.drop_path)
    if args.grad_checkpointing:
        model.set_grad_checkpointing(enable=True)
    model.to(device)
    if args.channels_last:
        model.to(memory_format=torch.channels_last)
    model_ema = None
    if args.model_ema:
        model_ema = ModelEmaV3(model, decay=args.model_ema_decay, use_warmup=True, device=args.model_ema_device)
    optimizer = create_optimizer_v2(model, **optimizer_kwargs(cfg=args))
    scheduler, epochs = create_scheduler_v2(
        optimizer, sched=args.sched, num_epochs=args.epochs, warmup_epochs=0, updates_per_epoch=args.steps,
        step_on_epochs=False,
    )
    mixup_fn = Mixup(mixup_alpha=args.mixup, label_smoothing=args.smoothing, num_classes=args.num_classes)
    autocast = (lambda: torch.autocast("cuda", torch.bfloat16)) if args.amp else nullcontext
    loader = LeafBatches(args, device)
    loss_fn = SoftTargetCrossEntropy()
    _logger.info(f"Model {args.model}, {sum(p.numel() for p in model.parameters()) / 1e6:.1f} M parameters")

    best = None
    with tempfile.TemporaryDirectory(prefix="herbarium-") as folder:
        for epoch in range(args.epochs):
            loss = train_one_epoch(
                epoch, model, loader, optimizer, loss_fn, mixup_fn, autocast, model_ema, scheduler, args
            )
            best = loss if best is None else min(best, loss)
        path = os.path.join(args.output or folder, "last.pth.tar")
        torch.save({"arch": args.model, "state_dict": model.state_dict(), "epoch": args.epochs}, path)
    print(f"best loss {best:.3f}")


if __name__ == "__main__":
    main()
