#> flags grad_enabled_in_step=true; manifest step_source=loader
import torch


class Scorer:
    def __init__(self, net, loader):
        self.net, self.loader = net.eval(), loader

    def score(self):  #> found
        hits = []
        for image, label in self.loader:  #> use loader; site loader num_workers=4
            out = self.net(image)  #> cost device_ms=9 cpu_ms=12; op aten::conv2d count=50 cpu_ms=10 device_ms=9
            hits.append(out.argmax(-1) == label)
        return torch.cat(hits)
