def blend(model, average, decay=0.999):  #> found
    for p, a in zip(model.parameters(), average):
        a.mul_(decay).add_(p.detach() * (1 - decay))
        #^ cost device_ms=4 calls=200; kernel vectorized_elementwise_kernel count=600 device_ms=4
