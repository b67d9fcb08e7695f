#> steps step_ms=60
import numpy as np
import torch

ROOM = 64 if small else 256


def together(texts):
    room = ROOM  #> found
    ids = np.zeros((len(texts), room), dtype=np.int64)  #> cost step_ms=0.2 cpu_ms=0.2
    for row, text in zip(ids, texts):
        row[: len(text)] = text
    return torch.from_numpy(ids)


def shortest(texts):
    room = max(len(text) for text in texts)
    return np.zeros((len(texts), room), dtype=np.int64)  #> cost step_ms=0.2 cpu_ms=0.2


for step in range(100):
    batch = together(texts[step])
    shorter = shortest(texts[step])
    loss = model(batch)  #> cost device_ms=50; padding rows=32 columns=256 padded=6000 shared=90
    loss.backward()
