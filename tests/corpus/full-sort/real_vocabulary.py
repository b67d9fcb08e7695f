# corpus: run, may launch-bound grad-in-eval small-batch
import torch

torch.manual_seed(0)
table = torch.randn(64, 20000)
words = torch.randn(32, 64)
with torch.inference_mode():
    for step in range(400):
        order = (words @ table).argsort(-1, descending=True)  #> found
        words = table[:, order[:, :8]].mean(-1).T.contiguous()
