"""A weight that is cast for each half of the batch."""

import torch

#> tensor %20 shape=[8192,8192] parameter=true
for first, second in loader:
    a = first @ weight.to(torch.bfloat16)
    #^ cost step_ms=9 device_ms=9 forward_ms=9
    #^ node aten._to_copy.default args=[%20] shape=[8192,8192] dtype=bfloat16
    #^ node aten.mm.default args=[%21,%0] shape=[64,8192] dtype=bfloat16
    b = second @ weight.to(torch.bfloat16)
    #^ found; cost step_ms=9 device_ms=9 forward_ms=9
    #^ node aten._to_copy.default args=[%20] shape=[8192,8192] dtype=bfloat16
    #^ node aten.mm.default args=[%22,%2] shape=[64,8192] dtype=bfloat16
    train(a, b)  #> cost step_ms=20 device_ms=20
