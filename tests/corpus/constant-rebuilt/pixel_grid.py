"""Coordinates of the pixels, which a function makes for each batch."""

import torch


def pixels(side, device):
    axis = torch.linspace(-1, 1, side, device=device)
    return torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    #^ cost step_ms=4 device_ms=4 forward_ms=4
    #^ node aten.linspace.default args=[-1,1,2048] shape=[2048] function=pixels
    #^ node aten.stack.default args=[[%0,%0],-1] shape=[2048,2048,2] function=pixels


for images in loader:
    where = pixels(2048, "cuda")  #> found; cost step_ms=0.1
    loss = error(field(where), images)
    #^ cost step_ms=30 device_ms=30; node aten.mm.default args=[%1,%9] shape=[4194304,64]
    loss.backward()
