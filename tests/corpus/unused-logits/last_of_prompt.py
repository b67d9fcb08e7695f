"""Scores of a whole prompt, of which one position decides the next word."""

import torch
from torch import nn


class Speller(nn.Module):
    def __init__(self, encoder, words, width):
        super().__init__()
        self.encoder, self.out = encoder, nn.Linear(width, words, bias=False)

    def forward(self, prompt):
        #> tensor %20 shape=[50000,768] parameter=true; tensor %21 shape=[4096,768]
        scores = self.out(self.encoder(prompt))
        #^ found; cost step_ms=12 device_ms=12
        #^ op aten::mm shapes=[[4096,768],[768,50000]] device_ms=8
        #^ node aten.t.default args=[%20] shape=[768,50000]
        #^ node aten.mm.default args=[%21,%0] shape=[4096,50000]
        #^ node aten.view.default args=[%1,[4,1024,50000]] shape=[4,1024,50000]
        return scores[:, -1].argmax(-1)
        #^ cost step_ms=1 device_ms=1
        #^ node aten.select.int args=[%2,1,-1] shape=[4,50000]
        #^ node aten.argmax.default args=[%3,-1] shape=[4]
