"""The next batch is copied on a second stream while this one is computed."""
import torch
import torch.nn as nn

CUDA = torch.cuda.is_available()
device = torch.device("cuda" if CUDA else "cpu")


class Prefetcher:
    def __init__(self, batches):
        self.batches = batches
        self.stream = torch.cuda.Stream() if CUDA else None

    def copy(self, pair):
        if self.stream is None:
            return pair
        with torch.cuda.stream(self.stream):
            return tuple(t.to(device, non_blocking=True) for t in pair)

    def __iter__(self):
        ahead = None
        for pair in self.batches:
            now, ahead = ahead, self.copy(pair)
            if now is not None:
                yield now
            if self.stream is not None:
                torch.cuda.current_stream().wait_stream(self.stream)
                for t in ahead:
                    t.record_stream(torch.cuda.current_stream())
        yield ahead


def pinned(n, batch):
    pairs = [(torch.randn(batch, 1024), torch.randint(0, 32, (batch,))) for _ in range(4)]
    if CUDA:
        pairs = [tuple(t.pin_memory() for t in p) for p in pairs]
    for i in range(n):
        yield pairs[i % 4]


model = nn.Sequential(
    nn.Linear(1024, 4096), nn.ReLU(inplace=True), nn.Linear(4096, 4096), nn.ReLU(inplace=True),
    nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Linear(4096, 32)).to(device)
opt = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
for i, (x, y) in enumerate(Prefetcher(pinned(600, batch=8192))):
    with torch.autocast(device.type, dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if i % 200 == 0:
        print(i, loss.item())
