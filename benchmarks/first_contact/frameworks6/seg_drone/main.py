import argparse
import os

import torch
import torch.utils.data
import torchvision
from torch import nn

import transforms as T
import meters as utils

SMALL = os.environ.get("SMALL") == "1"
NUM_CLASSES = 23


class DroneScenes(torch.utils.data.Dataset):
    def __init__(self, count, side, transforms, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.images = torch.randint(0, 256, (24, 3, side, side), dtype=torch.uint8, generator=g)
        coarse = torch.randint(0, NUM_CLASSES + 1, (24, 1, side // 16, side // 16), generator=g).float()
        masks = nn.functional.interpolate(coarse, size=side, mode="nearest")[:, 0].to(torch.uint8)
        self.masks = masks.masked_fill(masks == NUM_CLASSES, 255)
        self.count, self.transforms = count, transforms

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return self.transforms(self.images[i % 24], self.masks[i % 24])


def get_transform(crop_size):
    return T.Compose(
        [
            T.RandomHorizontalFlip(0.5),
            T.RandomCrop(crop_size),
            T.Normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)),
        ]
    )


def criterion(inputs, target):
    losses = {}
    for name, x in inputs.items():
        losses[name] = nn.functional.cross_entropy(x, target, ignore_index=255)
    if len(losses) == 1:
        return losses["out"]
    return losses["out"] + 0.5 * losses["aux"]


def train_one_epoch(model, criterion, optimizer, data_loader, lr_scheduler, device, epoch, args):
    model.train()
    if args.freeze_backbone:
        model.backbone.eval()  # flaw: wasted-gradient
    metric_logger = utils.MetricLogger(delimiter="  ")
    header = f"Epoch: [{epoch}]"
    for image, target in metric_logger.log_every(data_loader, args.print_freq, header):
        image = image.to(device, non_blocking=True, memory_format=torch.channels_last)
        target = target.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=args.amp):
            output = model(image)
            loss = criterion(output, target)

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lr_scheduler.step()

        metric_logger.update(loss=loss, lr=optimizer.param_groups[0]["lr"])


def main(args):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True

    dataset = DroneScenes(args.scenes, args.base_size, get_transform(args.crop_size))
    data_loader = torch.utils.data.DataLoader(
        dataset,
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.workers,
        drop_last=True,
        pin_memory=device.type == "cuda",
        persistent_workers=True,
    )
    model = torchvision.models.get_model(  # flaw: wasted-gradient
        args.model, weights=None, weights_backbone=None, num_classes=NUM_CLASSES
    )
    model.to(device, memory_format=torch.channels_last)

    # the head only; the backbone comes from our self-supervised run
    params_to_optimize = [{"params": [p for p in model.classifier.parameters() if p.requires_grad]}]
    if not args.freeze_backbone:
        params_to_optimize.insert(0, {"params": [p for p in model.backbone.parameters() if p.requires_grad]})
    optimizer = torch.optim.SGD(
        params_to_optimize, lr=args.lr, momentum=args.momentum, weight_decay=args.weight_decay, fused=True
    )
    iters = len(data_loader) * args.epochs
    lr_scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=iters, power=0.9)

    for epoch in range(args.epochs):
        train_one_epoch(model, criterion, optimizer, data_loader, lr_scheduler, device, epoch, args)


def get_args_parser():
    parser = argparse.ArgumentParser(description="PyTorch Segmentation Training", add_help=True)
    parser.add_argument("--model", default="lraspp_mobilenet_v3_large" if SMALL else "deeplabv3_resnet50", type=str)
    parser.add_argument("--scenes", default=96 if SMALL else 4800, type=int)
    parser.add_argument("--base-size", default=64 if SMALL else 768, type=int)
    parser.add_argument("--crop-size", default=48 if SMALL else 480, type=int)
    parser.add_argument("-b", "--batch-size", default=2 if SMALL else 8, type=int)
    parser.add_argument("--epochs", default=20 if SMALL else 6, type=int)
    parser.add_argument("-j", "--workers", default=1 if SMALL else 8, type=int)
    parser.add_argument("--lr", default=0.01, type=float)
    parser.add_argument("--momentum", default=0.9, type=float)
    parser.add_argument("--weight-decay", default=1e-4, type=float)
    parser.add_argument("--print-freq", default=50, type=int)
    parser.add_argument("--freeze-backbone", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--amp", action=argparse.BooleanOptionalAction, default=False)  # flaw: fp32-matmul
    return parser


if __name__ == "__main__":
    main(get_args_parser().parse_args())
