#> steps step_ms=60 device_busy_percent=25
import torch
from torch import nn

class Tagger(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.words = nn.Embedding(4096, width)
        self.cells = nn.GRU(width, width, 3, batch_first=True)

    def forward(self, ids):
        return self.cells(self.words(ids))[0]
        #^ cost step_ms=50 device_ms=13 idle_ms=37 cpu_ms=50 launches=2100
        #^ op aten::_cudnn_rnn count=1 launches=1000 device_ms=6
        #^ op aten::_cudnn_rnn_backward phase=backward count=1 launches=1080 device_ms=7

tagger = Tagger(512).cuda()
for ids, tags in sentences:
    tagger(ids).sum().backward()  #> cost step_ms=2 device_ms=1 idle_ms=1 launches=8
