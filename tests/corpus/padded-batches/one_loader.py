#> steps step_ms=60
import torch
from torch.nn.utils.rnn import pad_sequence


def collate(rows):
    return pad_sequence(rows, batch_first=True)


def train(model, sentences, epochs):
    loader = torch.utils.data.DataLoader(sentences, 32, collate_fn=collate)  #> site loader; found
    for epoch in range(epochs):
        for batch in loader:  #> use loader; cost cpu_ms=1 loader_ms=0.1
            loss = model(batch)  #> cost device_ms=50; padding rows=32 columns=90 padded=1500 shared=0
            loss.backward()
