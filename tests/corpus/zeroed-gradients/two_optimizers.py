#> device kind=cuda
# Each optimizer's gradients are filled by themselves; what adding to them costs belongs to its own line.
import torch

judge, maker = Judge().cuda(), Maker().cuda()
of_judge = torch.optim.SGD(judge.parameters(), lr=0.1)  #> site optimizer as=one type=SGD shapes=[[2,512,512]]
of_maker = torch.optim.SGD(maker.parameters(), lr=0.1)  #> site optimizer as=two type=SGD shapes=[[2,4096,4096]]
for real in batches:
    of_judge.zero_grad(set_to_none=False)
    #^ use one; cost step_ms=0.01 device_ms=0.01; op aten::_foreach_zero_ count=1 device_ms=0.01
    of_maker.zero_grad(set_to_none=False)
    #^ found; use two; cost step_ms=3 device_ms=3; op aten::_foreach_zero_ count=1 device_ms=3
    loss = judge(maker(real)).mean()
    #^ cost step_ms=60 device_ms=60 backward_ms=40; op aten::mm count=8 device_ms=20
    #^ op aten::add_ count=2 device_ms=9 phase=backward shapes=[[4096,4096],[4096,4096]]
    loss.backward()
