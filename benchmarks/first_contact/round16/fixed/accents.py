"""Fine-tuning an acoustic encoder for accent identification."""
import os
from types import SimpleNamespace

import torch
from torch import nn

tiny = os.environ.get("TINY") == "1"
hp = SimpleNamespace(
    utterances_per_pass=32,
    passes_per_update=1,
    updates=2 if tiny else 170,
    frames=16 if tiny else 128,
    width=32 if tiny else 512,
    layers=2 if tiny else 10,
    accents=24,
    lr=5e-5,
)
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def build():
    layer = nn.TransformerEncoderLayer(hp.width, max(1, hp.width // 64), 4 * hp.width, dropout=0.0,
                                       activation="gelu", batch_first=True, norm_first=True)
    return nn.ModuleDict(dict(
        front=nn.Linear(80, hp.width),
        trunk=nn.TransformerEncoder(layer, hp.layers, nn.LayerNorm(hp.width), enable_nested_tensor=False),
        accent=nn.Linear(hp.width, hp.accents)))


def classify(net, mel):
    return net["accent"](net["trunk"](net["front"](mel)).mean(1))


def corpus(size):
    mel = torch.randn(size, hp.frames, 80, device=dev)
    return mel, torch.randint(hp.accents, (size,), device=dev)


def passes(mel, accent):
    order = torch.randperm(len(mel), device=dev)
    for pick in order.split(hp.utterances_per_pass):
        yield mel[pick], accent[pick]


def fine_tune():
    torch.manual_seed(40)
    net = build().to(dev)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.AdamW(net.parameters(), lr=hp.lr, fused=True)
    mel, accent = corpus(64 if tiny else 5440)
    running = torch.zeros((), device=dev)
    count = updates = 0
    for x, y in passes(mel, accent):
        with torch.autocast(dev.type, dtype=torch.bfloat16):
            loss = criterion(classify(net, x), y) / hp.passes_per_update
        loss.backward()
        running += loss.detach()
        count += 1
        if count % hp.passes_per_update:
            continue
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        updates += 1
        if updates == hp.updates:
            break
    print(f"{updates} updates, mean loss {running.item() / updates:.4f}")


fine_tune()
