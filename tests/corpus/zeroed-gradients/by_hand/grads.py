def clear(net):
    for parameter in net.parameters():
        if parameter.grad is not None:
            parameter.grad.detach_()
            parameter.grad.data.zero_()  #> found; cost device_ms=2; op aten::zero_ count=90 device_ms=2
