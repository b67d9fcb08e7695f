#> memory growth_bytes_per_step=41943040 peak_bytes=3000000000
import torch


class Tower(torch.nn.Module):
    def forward(self, pixels):
        stages = []  #> cost calls=1
        for stage in self.stages:  #> cost calls=5
            pixels = stage(pixels).relu()  #> cost calls=4 device_ms=18 kept_bytes=41943040
            stages.append(pixels)  #> cost calls=4
        return torch.cat([one.mean((2, 3)) for one in stages], 1), pixels  #> cost calls=1 device_ms=1


class Gallery:
    def __init__(self):
        self.pages = {}

    def add(self, at, vectors, maps):
        self.pages[at] = {"vectors": vectors, "maps": maps}  #> found; cost function=Gallery.add calls=1


gallery = Gallery()
with torch.inference_mode():
    for at, pixels in enumerate(photos):  #> cost calls=1
        vectors, maps = tower(pixels)  #> cost calls=1
        gallery.add(at, vectors, maps)  #> cost calls=1
