# %% [markdown]
# # Leaf species with a small ViT
# Exported from a notebook. timm gives the model, the optimizer, the scheduler, the loss and mixup.

# %%
import os

import timm
import torch
from timm.data import Mixup
from timm.layers import set_fused_attn
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from timm.utils import AverageMeter, ModelEmaV3

SMALL = os.environ.get("SMALL") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.backends.cuda.matmul.allow_tf32 = True
set_fused_attn(False)  # expert: set_fused_attn(True)

# %%
cfg = dict(
    model="vit_tiny_patch16_224" if SMALL else "vit_small_patch16_224",
    img=32 if SMALL else 224,
    classes=100,
    batch=4 if SMALL else 128,
    epochs=2,
    updates=15 if SMALL else 45,
    lr=1e-3,
)

# %% [markdown]
# The pictures fit on the device, so that is where they live.

# %%
g = torch.Generator().manual_seed(21)
pictures = torch.randint(0, 256, (16 if SMALL else 2048, 3, cfg["img"], cfg["img"]), dtype=torch.uint8, generator=g).to(device)
species = torch.randint(cfg["classes"], (len(pictures),), generator=g).to(device)
mean = torch.tensor(timm.data.IMAGENET_DEFAULT_MEAN, device=device).view(1, 3, 1, 1) * 255
std = torch.tensor(timm.data.IMAGENET_DEFAULT_STD, device=device).view(1, 3, 1, 1) * 255


def batches(updates, size):
    order = torch.randperm(len(pictures), device=device)
    order = order.repeat(updates * size // len(order) + 1)
    for pick in order[: updates * size].split(size):
        yield (pictures[pick].float() - mean) / std, species[pick]


# %%
torch.manual_seed(0)
model = timm.create_model(
    cfg["model"], pretrained=False, num_classes=cfg["classes"], img_size=cfg["img"], drop_path_rate=0.05
).to(device)
optimizer = create_optimizer_v2(model, opt="adamw", lr=cfg["lr"], weight_decay=0.05, foreach=False)  # expert: fused=True
scheduler, epochs = create_scheduler_v2(
    optimizer,
    sched="cosine",
    num_epochs=cfg["epochs"],
    warmup_epochs=1,
    warmup_lr=1e-6,
    step_on_epochs=False,
    updates_per_epoch=cfg["updates"],
)
mixup = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, label_smoothing=0.1, num_classes=cfg["classes"])
criterion = SoftTargetCrossEntropy()
ema = ModelEmaV3(model, decay=0.999, foreach=True)

# %%
updates = 0
for epoch in range(cfg["epochs"]):
    model.train()
    meter = AverageMeter()
    total = torch.zeros((), device=device)
    for x, y in batches(cfg["updates"], cfg["batch"]):
        x, y = mixup(x, y)
        with torch.autocast(device.type, torch.bfloat16):
            logits = model(x)
        loss = criterion(logits.float(), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(model, step=updates)
        updates += 1
        scheduler.step_update(num_updates=updates)
        total += loss.detach()
    meter.update(total.item() / cfg["updates"], cfg["updates"])
    print(f"epoch {epoch}: loss {meter.avg:.4f}, lr {optimizer.param_groups[0]['lr']:.2e}")

# %%
with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16):
    sure = ema.module.eval()(next(batches(1, cfg["batch"]))[0]).softmax(-1).amax(-1)
print("mean confidence", sure.float().mean().item())
