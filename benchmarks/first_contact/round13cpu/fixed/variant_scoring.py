"""Scores genetic variants with an ensemble of wide networks (offline job)."""
import json
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import BatchSampler, SequentialSampler

SETTINGS = {
    "variants": 3840,
    "annotations": 200,
    "hidden": 1536,
    "members": 2,
    "variants_per_call": 64,
}


class Member(nn.Sequential):
    def __init__(self, inputs, hidden):
        super().__init__(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                         nn.Linear(hidden, 1))


class Ensemble(nn.Module):
    def __init__(self, members, inputs, hidden):
        super().__init__()
        self.members = nn.ModuleList(Member(inputs, hidden) for _ in range(members))

    def forward(self, x):
        return torch.cat([member(x) for member in self.members], dim=1).mean(dim=1)


def annotations(settings, folder):
    path = Path(folder) / "annotations.npy"
    table = np.random.default_rng(4).standard_normal((settings["variants"], settings["annotations"]), dtype=np.float32)
    np.save(path, table)
    return torch.from_numpy(np.load(path))


def score(model, table, per_call):
    result = torch.empty(len(table))
    with torch.inference_mode():
        for rows in BatchSampler(SequentialSampler(table), per_call, drop_last=False):
            chosen = slice(rows[0], rows[-1] + 1)
            result[chosen] = model(table[chosen])
    return result


def main():
    torch.manual_seed(9)
    model = Ensemble(SETTINGS["members"], SETTINGS["annotations"], SETTINGS["hidden"]).eval()
    with tempfile.TemporaryDirectory() as folder:
        table = annotations(SETTINGS, folder)
        scores = score(model, table, SETTINGS["variants_per_call"])
        report = Path(folder) / "report.json"
        report.write_text(json.dumps({"mean": round(float(scores.mean()), 5), "std": round(float(scores.std()), 5)}))
        print(report.read_text())


if __name__ == "__main__":
    main()
