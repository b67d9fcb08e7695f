"""Gradient accumulation over four large micro-batches, of torch's own encoder layers."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATE = 4
WIDTH, LENGTH, MICRO_BATCH = 1024, 256, 96


def build():
    layer = nn.TransformerEncoderLayer(
        WIDTH,
        nhead=16,
        dim_feedforward=4096,
        dropout=0.0,
        activation="gelu",
        batch_first=True,
        norm_first=True,
    )
    encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
    return nn.Sequential(nn.Embedding(1000, WIDTH), encoder, nn.Linear(WIDTH, 1000))


def endless(loader):
    while True:
        yield from loader


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    tokens = torch.randint(0, 1000, (20_000, LENGTH))
    loader = DataLoader(
        TensorDataset(tokens, tokens.roll(-1, 1)),
        batch_size=MICRO_BATCH,
        shuffle=True,
        drop_last=True,
        num_workers=4,
        pin_memory=True,
        persistent_workers=True,
    )
    model = build().cuda()
    compiled = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=1_000_000)
    loss_fn = nn.CrossEntropyLoss()
    for step, (inputs, targets) in enumerate(endless(loader)):
        inputs = inputs.to("cuda", non_blocking=True)
        targets = targets.to("cuda", non_blocking=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            scores = compiled(inputs)
            loss = loss_fn(scores.flatten(0, 1), targets.flatten()) / ACCUMULATE
        loss.backward()
        if (step + 1) % ACCUMULATE == 0:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            scheduler.step()
        if step % 1000 == 999:
            print(step + 1, loss.item() * ACCUMULATE)


if __name__ == "__main__":
    main()
