#> steps step_ms=30 device_busy_percent=35; memory peak_bytes=3000000000
from argparse import ArgumentParser
import torch.utils.data as data

parser = ArgumentParser()
parser.add_argument("--batch", type=int, default=8)  #> found
args = parser.parse_args()
loader = data.DataLoader(samples, args.batch, num_workers=4)  #> site loader batch_size=8 num_workers=4
for i, batch in enumerate(loader):  #> use loader; cost cpu_ms=0.1
    (model(batch) / 16).backward()  #> cost step_ms=29 device_ms=9 idle_ms=20 cpu_ms=29 launches=150
    if not (i + 1) % 16:
        opt.step()
