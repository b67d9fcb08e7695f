import torch


class Momentum:
    def __init__(self, model, lr, beta):
        self.params, self.lr, self.beta = list(model.parameters()), lr, beta
        self.speed = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self):
        for p, v in zip(self.params, self.speed):  #> found
            v.mul_(self.beta).add_(p.grad)
            #^ cost step_ms=4 cpu_ms=4 idle_ms=3 device_ms=1 launches=300 calls=150
            #^ op aten::mul_ count=150 cpu_ms=2 device_ms=0.5; op aten::add_ count=150 cpu_ms=2 device_ms=0.5
            p.add_(v, alpha=-self.lr)
            #^ cost step_ms=5 cpu_ms=5 idle_ms=3 device_ms=1 launches=150 calls=150
            #^ op aten::add_ count=150 cpu_ms=4 device_ms=1


def train(model, loader):
    optimizer = Momentum(model, 0.1, 0.9)
    for images, labels in loader:
        loss = model(images, labels)  #> cost device_ms=300 launches=900 calls=1
        loss.backward()
        optimizer.step()
