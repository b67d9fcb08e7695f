import os
from itertools import islice

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from torch.utils.data import DataLoader, IterableDataset
from transformers import GPT2Config, GPT2LMHeadModel, get_scheduler

small = os.environ.get("SMALL") == "1"

hps = dict(
    lr=6e-4,
    weight_decay=0.1,
    seq_len=32 if small else 256,
    train_batch_size=2 if small else 4,  # expert: train_batch_size=32
    gradient_accumulation_steps=2 if small else 8,  # expert: gradient_accumulation_steps=1
    updates=15 if small else 60,
    warmup=5,
    log_every=10,
    vocab_size=256 if small else 50304,
    n_layer=2 if small else 12,
    n_embd=32 if small else 768,
    n_head=2 if small else 12,
)


class ConstantLengthStories(IterableDataset):
    """Glues stories together with an end token between them and yields windows of the same length."""

    def __init__(self, vocab, seq_len, eos=0, seed=0):
        self.vocab, self.seq_len, self.eos, self.seed = vocab, seq_len, eos, seed

    def stories(self):
        info = torch.utils.data.get_worker_info()
        g = torch.Generator().manual_seed(self.seed + (info.id if info else 0))
        while True:
            n = int(torch.randint(80, 900, (), generator=g))
            steps = torch.randint(1, 12, (n,), generator=g)
            yield (steps.cumsum(0) % (self.vocab - 1)) + 1

    def __iter__(self):
        buffer = torch.empty(0, dtype=torch.long)
        end = torch.tensor([self.eos])
        for story in self.stories():
            buffer = torch.cat([buffer, story, end])
            while len(buffer) >= self.seq_len:
                yield buffer[: self.seq_len]
                buffer = buffer[self.seq_len :]


def grouped_params(model, wd):
    decay, rest = [], []
    for name, p in model.named_parameters():
        (decay if p.ndim >= 2 and "wpe" not in name else rest).append(p)
    return [{"params": decay, "weight_decay": wd}, {"params": rest, "weight_decay": 0.0}]


def train(hps):
    accelerator = Accelerator(
        mixed_precision="bf16" if torch.cuda.is_available() else "no",
        gradient_accumulation_steps=hps["gradient_accumulation_steps"],
        dataloader_config=DataLoaderConfiguration(dispatch_batches=False, non_blocking=True),
    )
    config = GPT2Config(
        vocab_size=hps["vocab_size"], n_positions=hps["seq_len"], n_layer=hps["n_layer"], n_embd=hps["n_embd"],
        n_head=hps["n_head"], resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False,
        bos_token_id=0, eos_token_id=0,
    )
    model = GPT2LMHeadModel(config)
    stories = ConstantLengthStories(hps["vocab_size"], hps["seq_len"])
    loader = DataLoader(stories, batch_size=hps["train_batch_size"], num_workers=0 if small else 2, pin_memory=True)
    optimizer = torch.optim.AdamW(grouped_params(model, hps["weight_decay"]), lr=hps["lr"], betas=(0.9, 0.95), fused=True)
    scheduler = get_scheduler("cosine", optimizer, num_warmup_steps=hps["warmup"], num_training_steps=hps["updates"])
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    model.train()
    done, total = 0, torch.zeros((), device=accelerator.device)
    micro = hps["updates"] * hps["gradient_accumulation_steps"]
    for tokens in islice(loader, micro):
        with accelerator.accumulate(model):
            loss = model(input_ids=tokens, labels=tokens).loss
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        total += loss.detach()
        if accelerator.sync_gradients:
            scheduler.step()
            done += 1
            if done % hps["log_every"] == 0:
                mean = total.item() / (hps["log_every"] * hps["gradient_accumulation_steps"])
                accelerator.print({"update": done, "lr": scheduler.get_last_lr()[0], "loss": round(mean, 4)})
                total.zero_()
    return accelerator.unwrap_model(model)


if __name__ == "__main__":
    train(hps)
