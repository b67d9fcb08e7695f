# corpus: run, may launch-bound unfused-elementwise gc-pause-in-step python-loop-over-tensor
import torch
from torch import nn
from torch.utils.data import BatchSampler, SequentialSampler

SETTINGS = {
    "hidden": 1536,
    "rows_per_call": 4,  #> found
}


def score(model, table, per_call):
    result = torch.empty(len(table))
    with torch.inference_mode():
        for rows in BatchSampler(SequentialSampler(table), per_call, drop_last=False):
            chosen = slice(rows[0], rows[-1] + 1)
            result[chosen] = model(table[chosen]).squeeze(1)
    return result


hidden = SETTINGS["hidden"]
model = nn.Sequential(nn.Linear(200, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))
print(score(model.eval(), torch.randn(40000, 200), SETTINGS["rows_per_call"]).mean())
