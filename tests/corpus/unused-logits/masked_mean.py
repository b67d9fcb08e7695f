"""A loss of all positions whose padding is multiplied away."""

import torch.nn.functional as F


def training_loss(net, batch):
    #> tensor %20 shape=[30000,512] parameter=true; tensor %21 shape=[8192,512]
    #> tensor %22 shape=[8192]; tensor %23 shape=[8192] unscored=6000
    states = net.body(batch.tokens)
    #^ cost step_ms=20 device_ms=20
    logits = net.head(states)
    #^ found; cost step_ms=18 device_ms=18 backward_ms=12
    #^ op aten::mm shapes=[[8192,512],[512,30000]] device_ms=6
    #^ op aten::mm phase=backward shapes=[[30000,8192],[8192,512]] device_ms=12
    #^ node aten.t.default args=[%20] shape=[512,30000]
    #^ node aten.mm.default args=[%21,%0] shape=[8192,30000]
    each = F.cross_entropy(logits, batch.targets, reduction="none")
    #^ cost step_ms=6 device_ms=6
    #^ op aten::_log_softmax shapes=[[8192,30000]] device_ms=6
    #^ node aten._log_softmax.default args=[%1] shape=[8192,30000]
    #^ node aten.nll_loss_forward.default args=[%2,%22] shape=[8192]
    return (each * batch.counts).sum() / batch.counts.sum()
    #^ cost step_ms=0.1 device_ms=0.1
    #^ node aten.mul.Tensor args=[%3,%23] shape=[8192]
