import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=True)
#^ site optimizer type=SGD shapes=[[40,64,64],[40,64]]


def clipped(tensors, most):
    total = sum(t.grad.pow(2).sum() for t in tensors)
    #^ found; cost step_ms=6 cpu_ms=6 idle_ms=5 device_ms=1 launches=160 calls=1
    #^ op aten::pow count=40 cpu_ms=2 device_ms=0.5 shapes=[[64,64]]; op aten::pow count=40 cpu_ms=2 shapes=[[64]]
    return (most / total.sqrt()).clamp(max=1.0)


for batch in loader:
    loss = model(batch)  #> cost device_ms=90 launches=900 calls=1
    loss.backward()
    scale = clipped(parameters_of(model), 1.0)
    average = {k: 0.9 * average[k] + 0.1 * v for k, v in model.state_dict().items()}
    #^ found; cost step_ms=6 cpu_ms=6 idle_ms=5 device_ms=1 launches=160 calls=1
    #^ op aten::mul count=160 cpu_ms=2 device_ms=0.5
    optimizer.step()
