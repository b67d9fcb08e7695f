#> flags grad_enabled_in_step=false autocast=true; totals idle_ms=0.4; manifest step_source=loader
#> steps device_busy_percent=98
import torch


@torch.inference_mode()
def evaluate(model, loader):
    model.eval()
    hits = torch.zeros((), device="cuda", dtype=torch.long)
    for images, labels in loader:  #> cost cpu_ms=0.2 loader_ms=0.2; use loader
        images = images.cuda(non_blocking=True)  #> cost device_ms=0.5 copy_ms=0.5
        with torch.autocast("cuda", torch.bfloat16):
            scores = model(
                images
            )  #> cost device_ms=19 cpu_ms=8 idle_ms=0.4; op aten::conv2d count=50 cpu_ms=6 device_ms=15
        hits += (scores.argmax(1) == labels.cuda(non_blocking=True)).sum()  #> cost device_ms=0.05
    return hits.item()


loader = torch.utils.data.DataLoader(images(), 128, num_workers=16, pin_memory=True)
#^ site loader num_workers=16 pin_memory=true persistent_workers=false batches_per_epoch=390 epochs_started=1
evaluate(network(), loader)
