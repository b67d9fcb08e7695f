import torch
from torch.nn import LogSoftmax

class Criterion(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.log_softmax = LogSoftmax(dim=-1)

    def forward(self, scores, words):
        flat = self.log_softmax(scores)  #> cost device_ms=8
        rows = torch.arange(words.shape[0], device=words.device)
        chosen = flat[rows, words]  #> cost device_ms=1
        return chosen.neg().mean()  #> found; cost device_ms=1
