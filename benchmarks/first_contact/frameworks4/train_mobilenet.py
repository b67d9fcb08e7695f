"""Bird sounds as images: torchvision's classification reference, cut down to what this project needs."""
import argparse
import datetime
import os
import tempfile
import time
from collections import deque

import torch
import torch.utils.data
import torchvision
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torchvision.transforms import v2

SMALL = os.environ.get("SMALL") == "1"


def get_args_parser():
    parser = argparse.ArgumentParser(description="Bird sound classification training", add_help=True)
    parser.add_argument("--model", default="mobilenet_v3_large", type=str, help="model name")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", type=str)
    parser.add_argument("-b", "--batch-size", default=4 if SMALL else 256, type=int)
    parser.add_argument("--epochs", default=1, type=int, metavar="N")
    parser.add_argument("--clips", default=320 if SMALL else 25600, type=int)
    parser.add_argument("--crop", default=96 if SMALL else 224, type=int)
    parser.add_argument("-j", "--workers", default=1 if SMALL else 12, type=int, metavar="N")
    parser.add_argument("--lr", default=0.05, type=float, help="initial learning rate")
    parser.add_argument("--momentum", default=0.9, type=float, metavar="M")
    parser.add_argument("--wd", "--weight-decay", default=2e-5, type=float, dest="weight_decay")
    parser.add_argument("--label-smoothing", default=0.1, type=float)
    parser.add_argument("--print-freq", default=10, type=int)
    parser.add_argument("--no-amp", dest="amp", action="store_false", help="train in float32")
    parser.set_defaults(amp=False)  # expert-gpu: amp=True
    parser.add_argument("--channels-last", default=False, type=bool)  # expert: channels_last=True
    parser.add_argument("--model-ema", default=True, type=bool, help="keep an average of the parameters")
    parser.add_argument("--model-ema-decay", default=0.999, type=float)
    return parser


class SmoothedValue:
    """A series of values, with its median over a window and its average over everything."""

    def __init__(self, window_size=20):
        self.deque = deque(maxlen=window_size)
        self.total, self.count = 0.0, 0

    def update(self, value):
        self.deque.append(value)
        self.total += value
        self.count += 1

    def __str__(self):
        median = torch.tensor(list(self.deque)).median().item()
        return f"{median:.4f} ({self.total / max(1, self.count):.4f})"


class MetricLogger:
    def __init__(self, delimiter="  "):
        self.meters, self.delimiter = {}, delimiter

    def update(self, **values):
        for name, value in values.items():
            self.meters.setdefault(name, SmoothedValue()).update(value)

    def log(self, at, total, header):
        shown = self.delimiter.join(f"{name}: {meter}" for name, meter in self.meters.items())
        print(f"{header} [{at}/{total}]  {shown}", flush=True)


class Spectrograms(torch.utils.data.Dataset):
    """Three-channel spectrograms (8 bit) with chirps whose slope is the label."""

    def __init__(self, clips, crop, classes=50, kept=64):
        generator = torch.Generator().manual_seed(9)
        side = crop + 32
        self.labels = torch.randint(classes, (kept,), generator=generator)
        noise = torch.randint(0, 120, (kept, 3, side, side), generator=generator, dtype=torch.uint8)
        for clip, label in zip(noise, self.labels.tolist()):
            times = torch.arange(side)
            clip[:, (times * (label + 5) // 40) % side, times] = 255
        self.spectrograms, self.clips = noise, clips
        self.transform = v2.Compose([v2.RandomCrop(crop), v2.RandomHorizontalFlip(0.2)])

    def __len__(self):
        return self.clips

    def __getitem__(self, index):
        place = index % len(self.spectrograms)
        return self.transform(self.spectrograms[place]), self.labels[place]


def to_input(image, device, memory_format):
    image = image.to(device, non_blocking=True)
    return image.to(torch.float32, memory_format=memory_format).div_(127.5).sub_(1)


def train_one_epoch(model, criterion, optimizer, data_loader, device, epoch, args, model_ema=None):
    model.train()
    logger = MetricLogger()
    memory_format = torch.channels_last if args.channels_last else torch.contiguous_format
    then = time.time()
    for i, (image, target) in enumerate(data_loader):
        image, target = to_input(image, device, memory_format), target.to(device, non_blocking=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=args.amp):
            output = model(image)
            loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if model_ema:
            model_ema.update_parameters(model)
        if i % args.print_freq == args.print_freq - 1:
            top1 = (output.argmax(1) == target).float().mean()
            logger.update(loss=loss.item(), acc1=100 * top1.item(), ms=1000 * (time.time() - then) / args.print_freq)
            logger.log(i + 1, len(data_loader), f"Epoch: [{epoch}]")
            then = time.time()


def main(args):
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    device = torch.device(args.device)
    dataset = Spectrograms(args.clips, args.crop)
    data_loader = torch.utils.data.DataLoader(
        dataset, batch_size=args.batch_size, shuffle=True, num_workers=args.workers,
        pin_memory=device.type == "cuda", drop_last=True, persistent_workers=True,
    )
    model = torchvision.models.get_model(args.model, weights=None, num_classes=50)
    model.to(device)
    if args.channels_last:
        model.to(memory_format=torch.channels_last)
    criterion = nn.CrossEntropyLoss(label_smoothing=args.label_smoothing)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=args.lr, momentum=args.momentum, weight_decay=args.weight_decay, fused=True
    )
    model_ema = None
    if args.model_ema:
        model_ema = AveragedModel(model, device=device, multi_avg_fn=get_ema_multi_avg_fn(args.model_ema_decay))

    start_time = time.time()
    with tempfile.TemporaryDirectory(prefix="birds-") as folder:
        for epoch in range(args.epochs):
            train_one_epoch(model, criterion, optimizer, data_loader, device, epoch, args, model_ema)
            torch.save({"model": model.state_dict(), "epoch": epoch}, os.path.join(folder, "checkpoint.pth"))
    print(f"Training time {datetime.timedelta(seconds=int(time.time() - start_time))}")


if __name__ == "__main__":
    main(get_args_parser().parse_args())
