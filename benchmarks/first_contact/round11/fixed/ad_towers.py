"""Click-through model: hashed id features in one table, a wide multilayer perceptron on top."""
import torch
from torch import nn
from torch.nn import functional as F

GPU = torch.cuda.is_available()
CONFIG = {
    "rows": 8_000_000 if GPU else 5000,
    "dim": 64 if GPU else 8,
    "fields": 8,
    "layers": [2048, 2048, 512] if GPU else [32, 16],
    "batch": 32768 if GPU else 64,
    "steps": 250 if GPU else 6,
    "table_lr": 0.5,
    "dense_lr": 1e-3,
    "log_every": 50,
}


def make_table(config):
    table = nn.Embedding(config["rows"], config["dim"], sparse=True)
    nn.init.normal_(table.weight, std=0.05)
    return table


def make_dense(config):
    sizes = [config["fields"] * config["dim"], *config["layers"]]
    parts = []
    for a, b in zip(sizes, sizes[1:]):
        parts += [nn.Linear(a, b), nn.ReLU(inplace=True)]
    return nn.Sequential(*parts, nn.Linear(sizes[-1], 8))


class ClickModel(nn.Module):
    """Eight outputs per impression: click, dwell classes and so on."""

    def __init__(self, config, device):
        super().__init__()
        with torch.device(device):
            self.table = make_table(config)
            self.dense = make_dense(config)

    def forward(self, ids):
        return self.dense(self.table(ids).flatten(1))


def impressions(config, device):
    """Synthetic log: popular ids come more often; a linear rule decides the targets."""
    gen = torch.Generator(device).manual_seed(77)
    shape = (10, config["batch"], config["fields"])
    popularity = torch.rand(shape, generator=gen, device=device).pow_(3)
    ids = (popularity * (config["rows"] - 1)).long()
    targets = torch.randint(0, 2, (*shape[:2], 8), generator=gen, device=device).float()
    for step in range(config["steps"]):
        yield step, ids[step % len(ids)], targets[step % len(ids)]


def run(config, device):
    torch.manual_seed(76)
    model = ClickModel(config, device)
    optimizers = [
        torch.optim.SGD(model.table.parameters(), lr=config["table_lr"]),
        torch.optim.Adam(model.dense.parameters(), lr=config["dense_lr"], fused=True),
    ]
    window = torch.zeros((), device=device)
    for step, ids, targets in impressions(config, device):
        with torch.autocast(device.type, torch.bfloat16):
            out = model(ids)
        loss = F.binary_cross_entropy_with_logits(out.float(), targets)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        window += loss.detach()
        if (step + 1) % config["log_every"] == 0 or step + 1 == config["steps"]:
            n = step % config["log_every"] + 1
            print(f"step {step + 1}: {window.item() / n:.4f}")
            window.zero_()


if __name__ == "__main__":
    run(CONFIG, torch.device("cuda" if GPU else "cpu"))
