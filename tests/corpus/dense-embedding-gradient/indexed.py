import torch

table = torch.nn.Parameter(torch.randn(1500000, 64).cuda())
optimizer = torch.optim.SGD([table], lr=0.1)
#^ site optimizer type=SGD elements=96000000 shapes=[[1,1500000,64]] with.momentum=0 with.weight_decay=0
for ids in batches:
    rows = table[ids]
    #^ found; cost step_ms=9 device_ms=9 backward_ms=8; op aten::index shapes=[[1500000,64],[]] device_ms=0.1
    #^ op aten::_index_put_impl_ phase=backward device_ms=1 shapes=[[1500000,64],[],[256,8,64]]
    #^ op aten::fill_ phase=backward device_ms=7 shapes=[[1500000,64]]
    loss = rows.square().mean()
    loss.backward()
    optimizer.step()  #> cost step_ms=4 device_ms=4; use optimizer
