import torch

OPTIMIZERS = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}

def make_optimizer(name, parameters, **settings):
    return OPTIMIZERS[name](parameters, lr=3e-4, foreach=False)  #> found; site optimizer type=Adam foreach=false parameters=160

opt = make_optimizer("adam", model.parameters())
for batch in loader:
    model(batch).backward()  #> cost device_ms=60
    opt.step()  #> cost step_ms=14 device_ms=6 idle_ms=8 launches=1900; use optimizer
