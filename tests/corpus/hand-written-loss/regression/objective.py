import torch

def smooth(prediction, target):
    gap = (prediction - target).abs()  #> cost device_ms=2
    near = 0.5 * gap ** 2  #> cost device_ms=2
    far = gap - 0.5  #> cost device_ms=1
    return torch.where(gap < 1.0, near, far).mean()  #> found; cost device_ms=3

OBJECTIVES = {"huber": smooth}
