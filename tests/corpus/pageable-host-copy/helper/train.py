import torch
from torch.utils.data import DataLoader

from moving import to_device

device = torch.device("cuda")
feed = DataLoader(  #> found; site loader num_workers=12 pin_memory=false
    load(), batch_size=512, num_workers=12, persistent_workers=True
)
for batch in feed:  #> cost cpu_ms=0.3; use loader
    batch = to_device(batch, device)
    learn(batch)  #> cost device_ms=22
