#> steps step_ms=60
import torch


def even(parts):
    width = max(map(len, parts))
    return [part + [0] * (width - len(part)) for part in parts]  #> cost cpu_ms=0.2


def all_alike(diaries):
    width = max(map(len, diaries))
    return [diary + [0] * (width - len(diary)) for diary in diaries]


def all_notes(notes):
    width = max(map(len, notes))
    return [note + [0] * (width - len(note)) for note in notes]


diaries, notes = all_alike(read()), all_notes(read())
for step in range(100):
    batch = torch.tensor(even(diaries[step]))  #> cost cpu_ms=0.1
    loss = model(batch)  #> found; cost device_ms=50; padding rows=32 columns=256 padded=6000 shared=150
    loss.backward()
