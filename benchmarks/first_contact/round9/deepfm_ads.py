"""DeepFM on hashed categorical fields and dense columns; blocks stream from pinned memory."""

import torch
import torch.nn as nn
import torch.nn.functional as F

GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if GPU else "cpu")
FIELDS, BUCKETS, DIM, DENSE = (24, 2048, 16, 64) if GPU else (6, 20, 8, 8)
BATCH, BLOCKS, STEPS = (65_536, 8, 350) if GPU else (64, 3, 9)
TOWER = (2048, 2048, 1024) if GPU else (32, 16)


class DeepFM(nn.Module):
    def __init__(self):
        super().__init__()
        # a row holds the factors of a bucket; its first order weight is in a column of its own
        self.factors = nn.Embedding(FIELDS * BUCKETS, DIM)
        self.first_order = nn.Embedding(FIELDS * BUCKETS, 1)
        nn.init.normal_(self.factors.weight, std=0.02)
        nn.init.zeros_(self.first_order.weight)
        self.register_buffer("offsets", torch.arange(FIELDS, dtype=torch.int32) * BUCKETS)
        layers, width = [], FIELDS * DIM + DENSE
        for size in TOWER:
            layers += [nn.Linear(width, size), nn.ReLU(inplace=True)]
            width = size
        self.deep = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, fields, dense):
        rows = fields + self.offsets
        v = self.factors(rows)
        second = 0.5 * (v.sum(1).square() - v.square().sum(1)).sum(1)
        first = self.first_order(rows).sum((1, 2))
        return first + second + self.deep(torch.cat([v.flatten(1), dense], dim=1)).squeeze(1)


class Stream:
    """Copies the next block on a side stream while the device works on the current one."""

    def __init__(self, blocks, steps):
        self.blocks, self.steps = blocks, steps
        self.side = torch.cuda.Stream() if GPU else None

    def fetch(self, step):
        block = self.blocks[step % len(self.blocks)]
        if not GPU:
            return block
        with torch.cuda.stream(self.side):
            return tuple(t.to(DEVICE, non_blocking=True) for t in block)

    def __iter__(self):
        ahead = self.fetch(0)
        for step in range(self.steps):
            if GPU:
                torch.cuda.current_stream().wait_stream(self.side)
                for t in ahead:
                    t.record_stream(torch.cuda.current_stream())
            current, ahead = ahead, self.fetch(step + 1)
            yield current


def impressions():
    weights = torch.randn(FIELDS)
    blocks = []
    for _ in range(BLOCKS):
        fields = torch.randint(0, BUCKETS, (BATCH, FIELDS), dtype=torch.int32)
        dense = torch.rand(BATCH, DENSE)
        score = (fields % 5 - 2).float() @ weights / FIELDS**0.5 + dense[:, 0]
        block = (fields, dense, torch.bernoulli(torch.sigmoid(score)))
        blocks.append(tuple(t.pin_memory() for t in block) if GPU else block)
    return blocks


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    blocks = impressions()
    model = DeepFM().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=GPU)
    average = torch.zeros((), device=DEVICE)
    for step, (fields, dense, clicked) in enumerate(Stream(blocks, STEPS), 1):
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16, enabled=GPU):
            logits = model(fields, dense)
        loss = F.binary_cross_entropy_with_logits(logits.float(), clicked)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        average.lerp_(loss.detach(), 0.02)
        if step % 100 == 0:
            print(f"step {step}: running loss {average.item():.4f}")
    print(f"running loss {average.item():.4f}")


if __name__ == "__main__":
    main()
