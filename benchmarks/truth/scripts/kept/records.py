"""Records parsed from JSON and dates at each step, features in numpy, a linear model."""

import json
from datetime import datetime, timedelta

import numpy as np
import torch

START = datetime(2024, 1, 1)
LINES = [
    json.dumps(
        {"when": (START + timedelta(hours=i)).isoformat(), "values": [i % 7, i % 11], "tag": f"t{i % 5}"}
    )
    for i in range(1000)
]


def read(lines):
    rows = []
    for line in lines:
        record = json.loads(line)
        when = datetime.fromisoformat(record["when"])
        rows.append((when.weekday(), when.hour, *record["values"], record["tag"]))
    return rows


def features(rows):
    tags = sorted({row[-1] for row in rows})
    matrix = np.zeros((len(rows), 4 + len(tags)))
    for at, row in enumerate(rows):
        matrix[at, :4] = row[:4]
        matrix[at, 4 + tags.index(row[-1])] = 1.0
    matrix -= matrix.mean(axis=0)
    return np.outer(matrix[:, 0], matrix[:, 1]), matrix


def report(rows):
    lines = [f"{day:>2} {hour:02d} {first + second:5.1f} {tag}" for day, hour, first, second, tag in rows]
    return "\n".join(lines)


weight = torch.zeros(9, 1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=1e-3)
for _ in range(10**6):
    rows = read(LINES)
    outer, matrix = features(rows)
    text = report(rows)
    x = torch.as_tensor(matrix, dtype=torch.float32)
    loss = (x @ weight - float(outer[0, 0])).square().mean() + len(text) * 0
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
