"""A counting service for the doors of a warehouse: cameras put frames into a queue, a worker thread counts pallets."""
import gc
import queue
import threading
from contextlib import contextmanager

import torch
from torch import nn

DOORS, FRAMES = 8, 390
STOP = object()


def counter_net():
    layers, channels = [], 3
    for width in (24, 48, 64):
        layers += [nn.Conv2d(channels, width, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        channels = width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 2), nn.Softplus()]
    return nn.Sequential(*layers).eval()


class Cameras(threading.Thread):
    """Plays a loop of frames of all doors into the queue."""

    def __init__(self, inbox):
        super().__init__(daemon=True)
        self.inbox = inbox
        generator = torch.Generator().manual_seed(40)
        self.film = torch.rand(10, DOORS, 3, 208, 208, generator=generator)

    def run(self):
        for number in range(FRAMES):
            self.inbox.put((number, self.film[number % len(self.film)]))
        self.inbox.put(STOP)


class Tally:
    def __init__(self):
        self.pallets = torch.zeros(DOORS)
        self.people = torch.zeros(DOORS)
        self.frames = 0

    def add(self, counts):
        self.pallets += counts[:, 0]
        self.people += counts[:, 1]
        self.frames += 1

    def line(self):
        busiest = int(self.pallets.argmax())
        mean = float(self.pallets.sum()) / self.frames
        return f"{self.frames} frames, {mean:.3f} pallets a frame, most at door {busiest}"


@contextmanager
def request(number, failures):
    """Keeps the service alive when a frame is broken."""
    try:
        yield
    except (RuntimeError, ValueError) as error:
        failures.append((number, str(error)))
    finally:  # flaw: gc-pause-in-step
        if number % 3 == 2:  # flaw: gc-pause-in-step
            gc.collect()  # flaw: gc-pause-in-step


class Service:
    def __init__(self, net, inbox):
        self.net = net
        self.inbox = inbox
        self.tally = Tally()
        self.failures = []

    def handle(self, frames):
        with torch.inference_mode():
            return self.net(frames)

    def run(self):
        while (item := self.inbox.get()) is not STOP:
            number, frames = item
            with request(number, self.failures):
                self.tally.add(self.handle(frames))
            if number % 60 == 59:
                print(self.tally.line(), flush=True)


def main():
    torch.manual_seed(33)
    inbox = queue.Queue(maxsize=4)
    service = Service(counter_net(), inbox)
    cameras = Cameras(inbox)
    cameras.start()
    service.run()
    cameras.join()
    print(service.tally.line(), f"- {len(service.failures)} failures")


if __name__ == "__main__":
    main()
