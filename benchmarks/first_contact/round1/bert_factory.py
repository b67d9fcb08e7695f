"""Masked language modelling with an optimizer that a factory makes from a config."""
import torch
from torch import nn

OPTIMIZERS = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam, "sgd": torch.optim.SGD}
CONFIG = {
    "optimizer": {"name": "adamw", "lr": 1e-4, "weight_decay": 0.01, "foreach": False},  # flaw: per-tensor-optimizer
    "model": {"dim": 512, "heads": 8, "layers": 12, "vocab": 8192},
    "train": {"batch": 16, "length": 256, "steps": 300},
}


def make_optimizer(params, name, **options):
    return OPTIMIZERS[name](params, **options)  # flaw: per-tensor-optimizer


class Bert(nn.Module):
    def __init__(self, dim, heads, layers, vocab):
        super().__init__()
        self.words = nn.Embedding(vocab, dim)
        layer = nn.TransformerEncoderLayer(dim, heads, 4 * dim, 0.0, "gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.decode = nn.Linear(dim, vocab)

    def forward(self, ids):
        return self.decode(self.encoder(self.words(ids)))


def run(config):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    t = config["train"]
    model = Bert(**config["model"]).to(device)
    optimizer = make_optimizer(model.parameters(), **config["optimizer"])
    ids = torch.randint(8192, (t["batch"], t["length"]), device=device)
    for _ in range(t["steps"]):
        shown = torch.where(torch.rand(ids.shape, device=device) < 0.15, 0, ids)
        with torch.autocast(device, torch.bfloat16):
            loss = nn.functional.cross_entropy(model(shown).flatten(0, 1), ids.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


run(CONFIG)
