from torch import autocast, bfloat16, nn, optim

def main(loader):
    net = nn.Sequential(nn.Conv2d(3, 64, 3), nn.ReLU(), nn.Conv2d(64, 64, 3))
    net = net.cuda()  #> found
    opt = optim.SGD(net.parameters(), 0.1, fused=True)
    for x, y in loader:
        with autocast("cuda", bfloat16):
            loss = (net(x) - y).square().mean()
            #^ cost device_ms=20; op aten::convolution device_ms=12 shapes=[[8,64,32,32]] dtypes=c10::BFloat16 strides=[[65536,1024,32,1]]
            #^ op aten::convolution_backward phase=backward device_ms=6 shapes=[[8,64,30,30]] dtypes=c10::BFloat16 strides=[[57600,900,30,1]]
        loss.backward()
        opt.step()  #> cost device_ms=1
