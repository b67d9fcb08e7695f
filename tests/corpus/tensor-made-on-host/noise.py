import torch as th


class Diffusion(th.nn.Module):
    def forward(self, x):
        noise = th.randn(x.shape).cuda()  #> found; cost cpu_ms=9 idle_ms=9 copy_ms=2 device_ms=2 step_ms=11
        #^ site tensor device=cpu to=cuda:0 op=randn bytes=12582912 calls=1
        #^ kernel "Memcpy HtoD (Pageable -> Device)" device_ms=2 kind=copy
        return self.net(x + noise)  #> cost device_ms=40


model = Diffusion()
