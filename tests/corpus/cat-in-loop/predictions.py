import torch as th
from torch import cat

@th.inference_mode()
def evaluate(model, loader):
    scores, truth = th.tensor([]), []
    for x, y in loader:
        p = model(x)  #> cost device_ms=10
        scores = cat((scores, p.cpu()))  #> found; cost step_ms=6 cpu_ms=6; op aten::cat count=50 cpu_ms=6
        truth.append(y)
    return scores, th.cat(truth)
