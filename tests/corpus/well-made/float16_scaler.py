#> device name="Tesla T4" capability=(7,5) multiprocessors=40 memory_bytes=16000000000 bf16=false
#> flags autocast=true; totals idle_ms=1; steps device_busy_percent=99.5; memory peak_bytes=12000000000
import torch

scaler = torch.amp.GradScaler("cuda")
loader = torch.utils.data.DataLoader(data, 32, num_workers=2, pin_memory=True, persistent_workers=True)
#^ site loader num_workers=2 pin_memory=true persistent_workers=true batches_per_epoch=900 epochs_started=1
for x, y in loader:  #> cost cpu_ms=0.3 loader_ms=0.3; use loader
    with torch.autocast("cuda", torch.float16):
        loss = net(x.cuda(non_blocking=True), y.cuda(non_blocking=True))
        #^ cost device_ms=180 forward_ms=60 backward_ms=120 idle_ms=1 step_ms=180
    scaler.scale(loss).backward()  #> cost cpu_ms=11 step_ms=0.2
    scaler.step(optimizer)  #> cost device_ms=2 sync_ms=0.4
    scaler.update()
    optimizer.zero_grad()
