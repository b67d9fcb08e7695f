#> steps step_ms=30 device_busy_percent=35; memory peak_bytes=3000000000
import torch
from config import TRAIN
from torch.utils.data import DataLoader

loader = DataLoader(dataset, **TRAIN)  #> site loader batch_size=2 num_workers=8
for batch in loader:  #> cost cpu_ms=0.1; use loader
    loss = model(batch)  #> cost step_ms=20 device_ms=7 idle_ms=13 cpu_ms=20 launches=150
    loss.backward()  #> cost step_ms=10 device_ms=4 idle_ms=6 cpu_ms=10 launches=60
    optimizer.step()
