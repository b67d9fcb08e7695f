# corpus: run, may per-tensor-optimizer launch-bound small-batch
import json

import torch
from torch.utils.data import DataLoader, IterableDataset

LINE = json.dumps({"values": [0.5 * n for n in range(3000)], "label": 1.0})


class Lines(IterableDataset):
    def __iter__(self):
        for _ in range(40000):
            record = json.loads(LINE)  #> found
            yield torch.tensor(record["values"][:32]), record["label"]


model = torch.nn.Linear(32, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(Lines(), batch_size=16):  #> found loader-without-workers
    loss = (model(x).squeeze(1) - y.float()).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
