import torch

RECIPES = {
    "small": {"width": 128},
    "solver": dict(lr=2e-4, betas=(0.9, 0.98), foreach=False),  #> found
}


def build(net, options):
    options = dict(options)
    cls = torch.optim.Adam
    return cls(net.parameters(), **options)  #> site optimizer type=Adam foreach=false parameters=220


opt = build(net, RECIPES["solver"])
for batch in batches:
    loss = net(batch)  #> cost device_ms=40
    loss.backward()
    opt.step()  #> cost step_ms=18 device_ms=8 idle_ms=10 launches=2600; use optimizer
