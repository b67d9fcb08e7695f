import torch
from settings import Settings
from model import Decoder

model = Decoder(Settings()).cuda()
for ids in loader:
    with torch.autocast("cuda", torch.bfloat16):
        scores = model(ids)  #> cost cpu_ms=0.2
    scores.sum().backward()
