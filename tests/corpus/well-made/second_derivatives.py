# A gradient that is differentiated again: of its operators the record has only the ones it starts from.
import torch


def gradient(output, variable):
    return torch.autograd.grad(output, variable, torch.ones_like(output), create_graph=True)[0]
    #^ cost step_ms=20 device_ms=20 forward_ms=20; node aten.ones_like.default args=[%9] shape=[50000,1]
    #^ op "autograd::engine::evaluate_function: MmBackward0" count=9
    #^ op aten::mm device_ms=20 shapes=[[50000,512],[512,512]] dtypes=c10::Half,c10::Half


for points in loader:
    loss = gradient(model(points), points).square().mean()
    #^ cost step_ms=20 device_ms=20 forward_ms=20; op aten::mm device_ms=20 shapes=[[512,512],[512,512]] dtypes=c10::Half,c10::Half
