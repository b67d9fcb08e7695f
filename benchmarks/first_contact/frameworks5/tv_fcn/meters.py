import datetime
import time
from collections import defaultdict, deque

import torch


class SmoothedValue:
    """A window of recent values and a global average; values may be tensors and are read only to be shown."""

    def __init__(self, window_size=20, fmt="{median:.4f} ({global_avg:.4f})"):
        self.deque = deque(maxlen=window_size)
        self.total = 0.0
        self.count = 0
        self.fmt = fmt

    def update(self, value, n=1):
        self.deque.append(value)
        self.count += n
        self.total = self.total + value * n

    def __str__(self):
        window = torch.tensor([float(v) for v in self.deque])
        return self.fmt.format(median=window.median().item(), global_avg=float(self.total) / max(1, self.count))


class MetricLogger:
    def __init__(self, delimiter="  "):
        self.meters = defaultdict(SmoothedValue)
        self.delimiter = delimiter

    def update(self, **kwargs):
        for name, value in kwargs.items():
            if isinstance(value, torch.Tensor):
                value = value.detach()
            self.meters[name].update(value)

    def add_meter(self, name, meter):
        self.meters[name] = meter

    def __str__(self):
        return self.delimiter.join(f"{name}: {meter}" for name, meter in self.meters.items())

    def log_every(self, iterable, print_freq, header=""):
        start_time = time.time()
        for i, obj in enumerate(iterable):
            yield obj
            if (i + 1) % print_freq == 0:
                eta = datetime.timedelta(seconds=int((time.time() - start_time) / (i + 1) * (len(iterable) - i - 1)))
                print(self.delimiter.join([header, f"[{i + 1}/{len(iterable)}]", f"eta: {eta}", str(self)]))
        total = datetime.timedelta(seconds=int(time.time() - start_time))
        print(f"{header} Total time: {total}")
