#> steps step_ms=60
import torch


class Gather:
    def __init__(self, settings):
        self.settings = settings

    def __call__(self, notes):
        room = self.settings.longest  #> found
        return torch.tensor([note + [0] * (room - len(note)) for note in notes])  #> cost step_ms=0.2 cpu_ms=0.2


class GatherShort:
    def __call__(self, notes):
        room = max(map(len, notes))
        return torch.tensor([note + [0] * (room - len(note)) for note in notes])  #> cost step_ms=0.2 cpu_ms=0.2


gather, gather_short = Gather(settings), GatherShort()
for step in range(100):
    batch = gather(notes[step])
    shorter = gather_short(notes[step])
    loss = model(batch)  #> cost device_ms=50; padding rows=32 columns=256 padded=6000 shared=90
    loss.backward()
