import torch

def fit(model, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr, fused=True)
    for x in torch.randn(100, 64, 32, device="cuda"):
        out = model(x)  #> found; cost step_ms=1 cpu_ms=1
        loss = out.square().mean()  #> cost step_ms=2 device_ms=1 launches=4
        loss.backward()
        optimizer.step()  #> cost step_ms=1 device_ms=1 launches=2
