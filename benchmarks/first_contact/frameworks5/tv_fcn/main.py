"""torchvision-style training of an FCN for semantic segmentation."""
import argparse
import os

import torch
import torchvision
from torch import nn
from torch.utils.data import DataLoader, Dataset

import presets
import meters

SMALL = os.environ.get("SMALL") == "1"


class Scenes(Dataset):
    """Decoded scenes with rectangles of the classes as masks."""

    def __init__(self, count, size, num_classes, transforms):
        g = torch.Generator().manual_seed(0)
        self.images = torch.randint(0, 256, (min(count, 128), 3, size, size), dtype=torch.uint8, generator=g)
        coarse = torch.randint(0, num_classes, (len(self.images), 1, size // 8, size // 8), generator=g)
        coarse[torch.rand(coarse.shape, generator=g) < 0.05] = 255
        self.masks = coarse.to(torch.uint8).repeat_interleave(8, 2).repeat_interleave(8, 3)
        self.count, self.transforms = count, transforms

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        i = i % len(self.images)
        return self.transforms(self.images[i], self.masks[i])


def criterion(inputs, target):
    losses = {name: nn.functional.cross_entropy(x, target, ignore_index=255) for name, x in inputs.items()}
    if len(losses) == 1:
        return losses["out"]
    return losses["out"] + 0.5 * losses["aux"]


def train_one_epoch(model, criterion, optimizer, data_loader, lr_scheduler, device, epoch, print_freq, amp):
    model.train()
    metric_logger = meters.MetricLogger(delimiter="  ")
    metric_logger.add_meter("lr", meters.SmoothedValue(window_size=1, fmt="{median:.6f}"))
    header = f"Epoch: [{epoch}]"
    for image, target in metric_logger.log_every(data_loader, print_freq, header):
        image = image.to(device, non_blocking=True, memory_format=torch.channels_last)
        target = target.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=amp):
            output = model(image)
            loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lr_scheduler.step()
        metric_logger.update(loss=loss, lr=optimizer.param_groups[0]["lr"])


def main(args):
    torch.backends.cudnn.benchmark = True
    device = torch.device(args.device)
    dataset = Scenes(args.images, args.base_size, args.num_classes, presets.SegmentationPresetTrain(args.crop_size))
    data_loader = DataLoader(
        dataset,
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.workers,
        pin_memory=device.type == "cuda",
        persistent_workers=True,
        drop_last=True,
    )
    model = torchvision.models.get_model(
        args.model, weights=None, weights_backbone=None, num_classes=args.num_classes, aux_loss=True
    )
    model.to(device, memory_format=torch.channels_last)

    params_to_optimize = [
        {"params": [p for p in model.backbone.parameters() if p.requires_grad]},
        {"params": [p for p in model.classifier.parameters() if p.requires_grad]},
        {"params": [p for p in model.aux_classifier.parameters() if p.requires_grad], "lr": args.lr * 10},
    ]
    optimizer = torch.optim.SGD(
        params_to_optimize, lr=args.lr, momentum=args.momentum, weight_decay=args.weight_decay, fused=True
    )
    total = len(data_loader) * args.epochs
    lr_scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=total, power=0.9)
    for epoch in range(args.epochs):
        train_one_epoch(
            model, criterion, optimizer, data_loader, lr_scheduler, device, epoch, args.print_freq, args.amp
        )


def get_args_parser():
    parser = argparse.ArgumentParser(description="Segmentation training")
    parser.add_argument("--model", default="fcn_resnet50")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("-b", "--batch-size", type=int, default=2 if SMALL else 16)
    parser.add_argument("--epochs", type=int, default=1 if SMALL else 4)
    parser.add_argument("--images", type=int, default=4 if SMALL else 4800)
    parser.add_argument("--base-size", type=int, default=48 if SMALL else 520)
    parser.add_argument("--crop-size", type=int, default=40 if SMALL else 480)
    parser.add_argument("--num-classes", type=int, default=21)
    parser.add_argument("-j", "--workers", type=int, default=2 if SMALL else 12)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight-decay", type=float, default=1e-4)
    parser.add_argument("--print-freq", type=int, default=100)
    parser.add_argument("--amp", action=argparse.BooleanOptionalAction, default=True)
    return parser


if __name__ == "__main__":
    main(get_args_parser().parse_args())
