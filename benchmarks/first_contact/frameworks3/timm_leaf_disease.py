import argparse
import os
import time

import timm
import timm.optim
import timm.scheduler
import timm.utils
import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy

SMALL = os.environ.get("SMALL") == "1"

parser = argparse.ArgumentParser(description="leaf diseases from field pictures")
parser.add_argument("--model", default="mobilenetv3_small_100" if SMALL else "efficientnetv2_rw_s")
parser.add_argument("--img-size", type=int, default=96 if SMALL else 224)
parser.add_argument("--batch-size", type=int, default=16 if SMALL else 64)
parser.add_argument("--updates", type=int, default=60 if SMALL else 300)
parser.add_argument("--pictures", type=int, default=192 if SMALL else 2560)
parser.add_argument("--classes", type=int, default=40)
parser.add_argument("--opt", default="adamw")
parser.add_argument("--lr", type=float, default=1e-3)
parser.add_argument("--weight-decay", type=float, default=0.05)
parser.add_argument("--drop", type=float, default=0.2)
parser.add_argument("--mixup", type=float, default=0.2)
parser.add_argument("--smoothing", type=float, default=0.1)
parser.add_argument("--model-ema-decay", type=float, default=0.998)
parser.add_argument("--log-interval", type=int, default=20)
parser.add_argument("--seed", type=int, default=42)


def pictures(args, device):
    """The set fits on the device: bytes, converted batch by batch."""
    label = torch.arange(args.pictures, device=device) % args.classes
    images = torch.randint(0, 200, (args.pictures, 3, args.img_size, args.img_size), dtype=torch.uint8, device=device)
    images[:, 1] += label.to(torch.uint8)[:, None, None]
    return images, label


def batches(images, label, args, device):
    mean = torch.tensor(timm.data.IMAGENET_DEFAULT_MEAN, device=device).view(1, 3, 1, 1) * 255
    std = torch.tensor(timm.data.IMAGENET_DEFAULT_STD, device=device).view(1, 3, 1, 1) * 255
    while True:
        order = torch.randperm(len(images), device=device)
        for pick in order[: len(order) // args.batch_size * args.batch_size].split(args.batch_size):
            yield (images[pick].float() - mean) / std, label[pick]


def main():
    args = parser.parse_args()
    timm.utils.random_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True

    model = timm.create_model(args.model, num_classes=args.classes, drop_rate=args.drop)
    model.to(device)  # expert: memory_format=torch.channels_last
    ema = timm.utils.ModelEmaV2(model, args.model_ema_decay, device="cpu")  # expert: ModelEmaV3(model, decay)
    optimizer = timm.optim.create_optimizer_v2(
        model, opt=args.opt, lr=args.lr, weight_decay=args.weight_decay, fused=True
    )
    schedule = timm.scheduler.CosineLRScheduler(
        optimizer, t_initial=args.updates, warmup_t=10, warmup_lr_init=1e-6, t_in_epochs=False
    )
    mixup = Mixup(mixup_alpha=args.mixup, label_smoothing=args.smoothing, num_classes=args.classes)
    criterion = SoftTargetCrossEntropy()
    losses = torch.zeros(args.log_interval, device=device)

    model.train()
    start = time.time()
    stream = batches(*pictures(args, device), args, device)
    for update in range(args.updates):
        x, y = mixup(*next(stream))
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
            output = model(x)
        loss = criterion(output.float(), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        ema.update(model)
        schedule.step_update(update + 1)
        losses[update % args.log_interval] = loss.detach()
        if (update + 1) % args.log_interval == 0:
            rate = (update + 1) * args.batch_size / (time.time() - start)
            print(f"{update + 1:4d}/{args.updates} loss {losses.mean().item():.4f} {rate:.0f} img/s")


if __name__ == "__main__":
    main()
