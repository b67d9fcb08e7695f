#> flags anomaly_mode=true allow_tf32=false cpu_count=16; totals idle_ms=60
#> gc ms=40
"""Ten flaws in one small script; test_ten_flaws.py mends them all at once and compares the losses."""

import gc

import torch
from torch import nn
from torch.utils.data import DataLoader

from model import Net, Numbers

torch.manual_seed(0)
torch.autograd.set_detect_anomaly(True)  #> found anomaly-detection-on

if torch.cuda.is_available():
    device = torch.device("cuda")
else:
    device = torch.device("cpu")


def main():
    loader = DataLoader(Numbers(), batch_size=32, shuffle=True)
    #^ found; found pageable-host-copy; site loader num_workers=0 pin_memory=false batches_per_epoch=8
    net = Net().to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, foreach=False)
    #^ found per-tensor-optimizer; site optimizer type=AdamW fused=None foreach=false parameters=60
    total = 0.0
    for step, (x, y) in enumerate(loader):  #> cost cpu_ms=40 idle_ms=40 loader_ms=40; use loader
        x = x.to(device)  #> cost device_ms=4 copy_ms=4; kernel "Memcpy HtoD (Pageable -> Device)" device_ms=4 kind=copy
        y = y.to(device)
        ramp = torch.arange(0, 64).to(device)  #> found tensor-made-on-host; cost cpu_ms=5 idle_ms=5 copy_ms=1
        #^ site tensor op=arange device=cpu to=cuda:0 bytes=512 calls=1
        logits = net(x + 0.01 * ramp)
        loss = nn.functional.cross_entropy(logits, y)  #> cost device_ms=1 check_ms=4
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  #> cost step_ms=9 device_ms=4 idle_ms=5 cpu_ms=9 launches=800; use optimizer
        total += loss.item()  #> found sync-in-step; cost cpu_ms=7 sync_ms=7 step_ms=0.2
        if device.type == "cuda":
            torch.cuda.synchronize()  #> found synchronize-in-step; cost cpu_ms=6 sync_ms=6 step_ms=0.2
        torch.cuda.empty_cache()  #> found cache-emptied-in-step; cost cpu_ms=3 idle_ms=3
        gc.collect()  #> found gc-pause-in-step; cost cpu_ms=8 idle_ms=8 gc_ms=8
    print("loss", total / len(loader))


if __name__ == "__main__":
    main()
