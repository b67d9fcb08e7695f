"""Essay scoring: RoBERTa regression with accelerate, gradient accumulation and layer-wise learning rates."""
import os
from types import SimpleNamespace

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed
from torch import nn
from torch.utils.data import DataLoader, Dataset
from transformers import RobertaConfig, RobertaModel, get_cosine_schedule_with_warmup

SMALL = os.environ.get("SMALL") == "1"

CFG = SimpleNamespace(
    seed=42,
    epochs=2 if SMALL else 4,
    n_essays=64 if SMALL else 8192,
    max_len=32 if SMALL else 512,
    train_batch_size=8 if SMALL else 32,
    gradient_accumulation_steps=1,
    encoder_lr=2e-5,
    decoder_lr=1e-4,
    llrd=0.9,
    weight_decay=0.01,
    warmup_ratio=0.1,
    num_workers=2 if SMALL else 4,
    print_freq=50,
    hidden=32 if SMALL else 768,
    layers=2 if SMALL else 12,
    heads=2 if SMALL else 12,
    vocab=1000 if SMALL else 50265,
)


class EssayWindows(Dataset):
    """Every essay is longer than max_len tokens; a random window of it is scored."""

    def __init__(self, cfg):
        rng = np.random.default_rng(cfg.seed)
        self.ids = rng.integers(4, cfg.vocab, (cfg.n_essays, cfg.max_len * 2), dtype=np.int32)
        self.scores = rng.normal(0, 1, (cfg.n_essays, 6)).astype(np.float32)
        self.max_len = cfg.max_len

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        start = np.random.randint(self.max_len)
        ids = self.ids[i, start : start + self.max_len].astype(np.int64)
        return {"input_ids": torch.from_numpy(ids), "labels": torch.from_numpy(self.scores[i])}


class EssayModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        config = RobertaConfig(
            vocab_size=cfg.vocab,
            hidden_size=cfg.hidden,
            num_hidden_layers=cfg.layers,
            num_attention_heads=cfg.heads,
            intermediate_size=cfg.hidden * 4,
            max_position_embeddings=cfg.max_len + 2,
            type_vocab_size=1,
            pad_token_id=1,
        )
        self.backbone = RobertaModel(config, add_pooling_layer=False)
        self.fc = nn.Linear(cfg.hidden, 6)

    def forward(self, input_ids):
        hidden = self.backbone(input_ids=input_ids).last_hidden_state
        return self.fc(hidden.mean(1))


def llrd_parameters(model, cfg):
    """Lower layers learn slower; biases and LayerNorm weights are not decayed."""
    no_decay = ("bias", "LayerNorm.weight")
    groups = {}
    for name, param in model.named_parameters():
        weight_decay = 0.0 if name.endswith(no_decay) else cfg.weight_decay
        if name.startswith("fc"):
            lr = cfg.decoder_lr
        elif "encoder.layer." in name:
            depth = int(name.split("encoder.layer.")[1].split(".")[0])
            lr = cfg.encoder_lr * cfg.llrd ** (cfg.layers - 1 - depth)
        else:
            lr = cfg.encoder_lr * cfg.llrd ** cfg.layers
        groups.setdefault((lr, weight_decay), []).append(param)
    return [{"params": params, "lr": lr, "weight_decay": wd} for (lr, wd), params in groups.items()]


def train_fn(accelerator, model, criterion, optimizer, scheduler, loader, epoch, cfg):
    model.train()
    running = torch.zeros((), device=accelerator.device)
    for step, batch in enumerate(loader):
        with accelerator.accumulate(model):
            with accelerator.autocast():
                preds = model(batch["input_ids"])
            loss = criterion(preds.float(), batch["labels"])
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        running += loss.detach()
        if (step + 1) % cfg.print_freq == 0:
            accelerator.print(f"epoch {epoch} step {step + 1} loss {running.item() / cfg.print_freq:.4f}")
            running.zero_()


def main():
    set_seed(CFG.seed)
    accelerator = Accelerator(
        mixed_precision="bf16",
        gradient_accumulation_steps=CFG.gradient_accumulation_steps,
        step_scheduler_with_optimizer=True,
        dataloader_config=DataLoaderConfiguration(non_blocking=True),
    )
    loader = DataLoader(
        EssayWindows(CFG),
        batch_size=CFG.train_batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=CFG.num_workers,
        persistent_workers=True,
        pin_memory=torch.cuda.is_available(),
    )
    model = EssayModel(CFG)
    optimizer = torch.optim.AdamW(
        llrd_parameters(model, CFG),
        lr=CFG.encoder_lr,
        eps=1e-6,
        fused=True,
    )
    updates = CFG.epochs * len(loader) // CFG.gradient_accumulation_steps
    scheduler = get_cosine_schedule_with_warmup(optimizer, int(CFG.warmup_ratio * updates), updates)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    criterion = nn.SmoothL1Loss()
    for epoch in range(CFG.epochs):
        train_fn(accelerator, model, criterion, optimizer, scheduler, loader, epoch, CFG)
    accelerator.print("finished", updates, "updates")


if __name__ == "__main__":
    main()
