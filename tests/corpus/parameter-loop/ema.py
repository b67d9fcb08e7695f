import copy

import torch


class Slow:
    def __init__(self, model, decay=0.996):
        self.model, self.decay = copy.deepcopy(model).requires_grad_(False), decay

    def follow(self, online):
        state = online.state_dict()
        with torch.no_grad():
            for name, mine in self.model.state_dict().items():  #> found
                mine.data = mine.data * self.decay + state[name] * (1 - self.decay)
                #^ cost step_ms=9 cpu_ms=9 idle_ms=6 device_ms=2 launches=480 calls=160
                #^ op aten::mul count=320 cpu_ms=4 device_ms=1; op aten::add count=160 cpu_ms=2 device_ms=1


def train(model, loader):
    slow = Slow(model)
    for images in loader:
        loss = model(images, slow.model(images))  #> cost device_ms=300 launches=900 calls=1
        loss.backward()
        slow.follow(model)
