# corpus: run, may launch-bound small-batch unfused-elementwise slow-sample-line gc-pause-in-step tensor-made-on-host
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(1000, 128, padding_idx=0)
        layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 3)

    def forward(self, ids):
        hidden = self.layers(self.tokens(ids), src_key_padding_mask=ids.eq(0))
        return hidden.mean(1)


def batches(texts):
    order = list(range(len(texts)))  #> found
    for at in range(0, len(order), 16):
        picked = order[at : at + 16]
        yield picked, pad_sequence([texts[i] for i in picked], batch_first=True)


torch.manual_seed(0)
encoder = Encoder().eval()
texts = [torch.randint(1, 1000, (int(n),)) for n in torch.randn(4800).mul(0.9).add(3.4).exp().clip(6, 320)]
vectors = torch.empty(len(texts), 128)
with torch.inference_mode():
    for picked, ids in batches(texts):
        vectors[picked] = encoder(ids)
