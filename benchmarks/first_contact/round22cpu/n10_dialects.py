"""A deep, narrow network tells dialects from vowel measurements; trained with AdamW."""
import torch
from torch import nn

from n10_dialects_lib import DecoupledAdam, cosine

DEPTH, WIDTH, FORMANTS, DIALECTS = 40, 32, 24, 10
ROWS, STEPS, BATCH = 16384, 700, 512


class Block(nn.Sequential):
    def __init__(self):
        super().__init__(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.ReLU(inplace=True), nn.Linear(WIDTH, WIDTH))

    def forward(self, x):
        return x + super().forward(x)


def vowels(gen):
    middle = torch.randn(DIALECTS, FORMANTS, generator=gen)
    kind = torch.randint(DIALECTS, (ROWS,), generator=gen)
    return middle[kind] + 1.5 * torch.randn(ROWS, FORMANTS, generator=gen), kind


def stream(data, gen):
    x, y = data
    while True:
        for rows in torch.randperm(ROWS, generator=gen).split(BATCH):
            yield x[rows], y[rows]


def main():
    torch.manual_seed(31)
    gen = torch.Generator().manual_seed(31)
    net = nn.Sequential(nn.Linear(FORMANTS, WIDTH), *(Block() for _ in range(DEPTH)), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, DIALECTS))
    optimizer = DecoupledAdam(net.parameters(), lr=1e-3, weight_decay=0.02)  # flaw: parameter-loop
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, cosine(STEPS, warm=50))
    total = torch.zeros(())
    for step, (x, y) in zip(range(1, STEPS + 1), stream(vowels(gen), gen)):
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rate.step()
        total += loss.detach()
        if step % 100 == 0:
            print(f"{step:4d} {total.item() / 100:.5f}", flush=True)
            total.zero_()


if __name__ == "__main__":
    main()
