"""Classify seismic shots; a thread gathers the next batches while the device works."""
import os
import queue
import threading

import torch
import torch.nn.functional as F
from torch import nn

TINY = bool(os.environ.get("TINY"))
ON_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if ON_GPU else "cpu")
SHOTS, TRACES, SAMPLES, ROWS, STEPS = (32, 4, 64, 4, 5) if TINY else (3072, 48, 1024, 512, 450)


class Feeder(threading.Thread):
    def __init__(self, shots, plan):
        super().__init__(daemon=True)
        self.shots, self.plan = shots, plan
        self.ready = queue.Queue(maxsize=3)
        self.start()

    def run(self):
        for pick in self.plan:
            wave = torch.empty(ROWS, TRACES, SAMPLES)  # flaw: pageable-host-copy
            torch.index_select(self.shots, 0, pick, out=wave)
            self.ready.put(wave)
        self.ready.put(None)

    def __iter__(self):
        while (item := self.ready.get()) is not None:
            yield item


class ShotNet(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.embed = nn.Linear(SAMPLES, width)
        layer = nn.TransformerEncoderLayer(width, 8, 3 * width, 0.0, "gelu", batch_first=True, norm_first=True)
        self.trunk = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.out = nn.Linear(width, 4)

    def forward(self, wave):
        return self.out(self.trunk(self.embed(wave)).mean(1))


def main():
    torch.manual_seed(0)
    shots = torch.randn(SHOTS, TRACES, SAMPLES)
    plan = torch.randint(SHOTS, (STEPS, ROWS))
    kinds = torch.randint(4, (SHOTS,))[plan].to(DEVICE)
    net = ShotNet(32 if TINY else 512, 1 if TINY else 6).to(DEVICE)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
    total = torch.zeros((), device=DEVICE)
    for kind, wave in zip(kinds, Feeder(shots, plan)):
        wave = wave.to(DEVICE)  # flaw: pageable-host-copy
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(wave), kind)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        total += loss.detach()
    print(f"loss {total.item() / STEPS:.3f}")


main()
