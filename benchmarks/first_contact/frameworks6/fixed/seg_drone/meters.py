import datetime
import time
from collections import defaultdict, deque

import torch


class SmoothedValue:
    """Track a series of values; tensors stay on their device until they are printed."""

    def __init__(self, window_size=20, fmt="{median:.4f} ({last:.4f})"):
        self.deque = deque(maxlen=window_size)
        self.fmt = fmt

    def update(self, value):
        self.deque.append(value)

    def __str__(self):
        values = torch.stack([torch.as_tensor(v, dtype=torch.float32).cpu() for v in self.deque])
        return self.fmt.format(median=values.median().item(), last=values[-1].item())


class MetricLogger:
    def __init__(self, delimiter="\t"):
        self.meters = defaultdict(SmoothedValue)
        self.delimiter = delimiter

    def update(self, **kwargs):
        for k, v in kwargs.items():
            self.meters[k].update(v.detach() if torch.is_tensor(v) else v)

    def __str__(self):
        return self.delimiter.join(f"{name}: {meter}" for name, meter in self.meters.items())

    def log_every(self, iterable, print_freq, header=""):
        start = time.time()
        for i, obj in enumerate(iterable):
            yield obj
            if i % print_freq == 0:
                eta = datetime.timedelta(seconds=int((time.time() - start) / (i + 1) * (len(iterable) - i)))
                print(self.delimiter.join([header, f"[{i}/{len(iterable)}]", f"eta: {eta}", str(self)]), flush=True)
