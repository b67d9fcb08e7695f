#> flags autocast=true allow_tf32=true cudnn_benchmark=true; totals idle_ms=0.3 sync_ms=0.05 loader_ms=0.4
#> steps device_busy_percent=99.6; memory peak_bytes=40000000000 growth_bytes_per_step=0
import torch
from torch import nn
from torch.utils.data import DataLoader

torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.benchmark = True


def main():
    loader = DataLoader(
        images(), batch_size=256, shuffle=True, num_workers=12, pin_memory=True, persistent_workers=True
    )
    #^ site loader num_workers=12 pin_memory=true persistent_workers=true batches_per_epoch=5000 epochs_started=1
    model = resnet().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, fused=True)
    #^ site optimizer type=SGD fused=true parameters=161
    running = torch.zeros((), device="cuda")
    for step, (x, y) in enumerate(
        loader
    ):  #> cost cpu_ms=0.4 loader_ms=0.4 idle_ms=0.2 step_ms=0.2; use loader
        x = x.cuda(non_blocking=True).to(memory_format=torch.channels_last)
        #^ cost device_ms=1.6 copy_ms=1.5 step_ms=0.1; kernel "Memcpy HtoD (Pinned -> Device)" device_ms=1.5 kind=copy
        y = y.cuda(non_blocking=True)  #> cost device_ms=0.01
        with torch.autocast("cuda", torch.bfloat16):
            loss = nn.functional.cross_entropy(
                model(x), y
            )  #> cost device_ms=75 forward_ms=25 backward_ms=50
        optimizer.zero_grad()  #> cost cpu_ms=0.1 step_ms=0
        loss.backward()  #> cost cpu_ms=9 step_ms=0.1
        optimizer.step()  #> cost device_ms=0.4 launches=2; op aten::_fused_sgd_ count=1 device_ms=0.4 launches=2
        running += loss.detach()  #> cost device_ms=0.003 cpu_ms=0.02
        if step % 100 == 99:
            print(running.item() / 100)  #> cost cpu_ms=0.5 sync_ms=0.5
            running.zero_()


main()
