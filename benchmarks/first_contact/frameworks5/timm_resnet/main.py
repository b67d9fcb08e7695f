"""ImageNet-style training of a timm convnet with its optimizer, scheduler and EMA factories."""
import argparse
import logging
import os
from contextlib import suppress
from functools import partial

import numpy as np
import torch
from timm import create_model, utils
from timm.data import Mixup
from timm.data.constants import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"
_logger = logging.getLogger("train")

parser = argparse.ArgumentParser(description="PyTorch ImageNet Training")
parser.add_argument("--model", default="resnet18" if SMALL else "resnet50d")
parser.add_argument("--num-classes", type=int, default=16 if SMALL else 1000)
parser.add_argument("--img-size", type=int, default=32 if SMALL else 224)
parser.add_argument("-b", "--batch-size", type=int, default=4 if SMALL else 192)
parser.add_argument("--train-images", type=int, default=16 if SMALL else 9600)
parser.add_argument("--channels-last", action=argparse.BooleanOptionalAction, default=False)  # flaw: channels-first-conv
parser.add_argument("--amp", action=argparse.BooleanOptionalAction, default=True)
parser.add_argument("--amp-dtype", default="bfloat16")
parser.add_argument("--opt", default="adamw")
parser.add_argument("--weight-decay", type=float, default=0.05)
parser.add_argument("--lr", type=float, default=1e-3)
parser.add_argument("--sched", default="cosine")
parser.add_argument("--epochs", type=int, default=2 if SMALL else 14)
parser.add_argument("--warmup-epochs", type=int, default=1 if SMALL else 3)
parser.add_argument("--mixup", type=float, default=0.2)
parser.add_argument("--smoothing", type=float, default=0.1)
parser.add_argument("--model-ema", action=argparse.BooleanOptionalAction, default=True)
parser.add_argument("--model-ema-force-cpu", action=argparse.BooleanOptionalAction, default=True)  # flaw: framework-wait
parser.add_argument("--model-ema-decay", type=float, default=0.9998)
parser.add_argument("-j", "--workers", type=int, default=2 if SMALL else 12)
parser.add_argument("--log-interval", type=int, default=100)
parser.add_argument("--seed", type=int, default=42)


class CroppedImages(Dataset):
    """Decoded uint8 images, a little larger than the crop: random crop and flip."""

    def __init__(self, count, img_size, num_classes):
        rng = np.random.default_rng(0)
        side = img_size * 8 // 7
        self.pool = torch.from_numpy(rng.integers(0, 256, (min(count, 1024), 3, side, side), dtype=np.uint8))
        self.targets = rng.integers(0, num_classes, count)
        self.img_size, self.room = img_size, side - img_size

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, i):
        top, left, flip = np.random.randint(self.room), np.random.randint(self.room), np.random.rand() < 0.5
        img = self.pool[i % len(self.pool), :, top : top + self.img_size, left : left + self.img_size]
        return img.flip(-1) if flip else img.clone(), int(self.targets[i])


class Normalizer:
    def __init__(self, device):
        self.mean = torch.tensor([x * 255 for x in IMAGENET_DEFAULT_MEAN], device=device).view(1, 3, 1, 1)
        self.std = torch.tensor([x * 255 for x in IMAGENET_DEFAULT_STD], device=device).view(1, 3, 1, 1)

    def __call__(self, x):
        return x.float().sub_(self.mean).div_(self.std)


def train_one_epoch(epoch, model, loader, normalize, mixup_fn, optimizer, loss_fn, args, device,
                    lr_scheduler, amp_autocast, model_ema=None):
    model.train()
    losses_m = torch.zeros((), device=device)
    num_updates = epoch * len(loader)
    for batch_idx, (input, target) in enumerate(loader):
        input = input.to(device, non_blocking=True)
        target = target.to(device, non_blocking=True)
        input, target = mixup_fn(normalize(input), target)
        if args.channels_last:
            input = input.contiguous(memory_format=torch.channels_last)
        with amp_autocast():
            output = model(input)
            loss = loss_fn(output, target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        num_updates += 1
        if model_ema is not None:
            model_ema.update(model, step=num_updates)
        lr_scheduler.step_update(num_updates=num_updates)
        losses_m += loss.detach()
        if num_updates % args.log_interval == 0:
            _logger.info("epoch %d update %d loss %.4f", epoch, num_updates, losses_m.item() / (batch_idx + 1))


def main():
    utils.setup_default_logging()
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    utils.random_seed(args.seed)

    model = create_model(args.model, num_classes=args.num_classes)
    model.to(device=device)
    if args.channels_last:
        model.to(memory_format=torch.channels_last)

    optimizer = create_optimizer_v2(model, opt=args.opt, lr=args.lr, weight_decay=args.weight_decay, fused=True)
    amp_autocast = suppress
    if args.amp:
        amp_autocast = partial(torch.autocast, device_type=device.type, dtype=getattr(torch, args.amp_dtype))

    model_ema = None
    if args.model_ema:
        model_ema = utils.ModelEmaV3(
            model,
            decay=args.model_ema_decay,
            use_warmup=True,
            device="cpu" if args.model_ema_force_cpu else None,  # flaw: framework-wait
        )

    loader = DataLoader(
        CroppedImages(args.train_images, args.img_size, args.num_classes),
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=args.workers,
        pin_memory=torch.cuda.is_available(),
        persistent_workers=True,
    )
    mixup_fn = Mixup(mixup_alpha=args.mixup, label_smoothing=args.smoothing, num_classes=args.num_classes)
    lr_scheduler, num_epochs = create_scheduler_v2(
        optimizer,
        sched=args.sched,
        num_epochs=args.epochs,
        warmup_epochs=args.warmup_epochs,
        warmup_lr=1e-6,
        step_on_epochs=False,
        updates_per_epoch=len(loader),
    )
    loss_fn = SoftTargetCrossEntropy()
    normalize = Normalizer(device)
    for epoch in range(min(num_epochs, args.epochs)):
        train_one_epoch(epoch, model, loader, normalize, mixup_fn, optimizer, loss_fn, args, device,
                        lr_scheduler, amp_autocast, model_ema)
        lr_scheduler.step(epoch + 1)
    _logger.info("finished %d epochs", num_epochs)


if __name__ == "__main__":
    main()
