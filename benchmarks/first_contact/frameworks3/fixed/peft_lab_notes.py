"""LoRA adapters on a frozen decoder: turns lab notes into structured protocols.

The base model would be loaded from our registry; here it is made from its config.
"""
import math
import os
import time

import torch
from peft import LoraConfig, TaskType, get_peft_model
from torch.utils.data import DataLoader, Dataset
from transformers import AutoModelForCausalLM, Qwen2Config, get_cosine_schedule_with_warmup

SMALL = os.environ.get("SMALL") == "1"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

BASE = dict(
    vocab_size=1024 if SMALL else 32000,
    hidden_size=192 if SMALL else 1536,
    intermediate_size=512 if SMALL else 4096,
    num_hidden_layers=3 if SMALL else 8,
    num_attention_heads=6 if SMALL else 12,
    num_key_value_heads=2 if SMALL else 4,
    max_position_embeddings=1024,
)
TRAIN = {
    "steps": 60 if SMALL else 300,
    "batch": 8,
    "length": 64 if SMALL else 512,
    "lr": 2e-4,
    "base_dtype": torch.bfloat16 if DEVICE == "cuda" else torch.float32,
    "workers": 0 if SMALL else 2,
    "report": 20 if SMALL else 50,
}


class Protocols(Dataset):
    """Note and protocol in one sequence; only the protocol counts for the loss."""

    def __init__(self, count, length, vocab):
        g = torch.Generator().manual_seed(31)
        start = torch.randint(1, vocab, (count, 1), generator=g)
        self.ids = (start + 3 * torch.arange(length)) % (vocab - 1) + 1
        self.labels = self.ids.clone()
        self.labels[:, : length // 3] = -100

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.labels[i]}


def adapted():
    torch.manual_seed(31)
    config = Qwen2Config(**BASE, use_cache=False, bos_token_id=1, eos_token_id=2)
    base = AutoModelForCausalLM.from_config(config, dtype=TRAIN["base_dtype"])
    lora = LoraConfig(
        task_type=TaskType.CAUSAL_LM,
        r=16,
        lora_alpha=32,
        lora_dropout=0.0,
        target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
    )
    model = get_peft_model(base, lora).to(DEVICE)
    model.print_trainable_parameters()
    return model.train()


def main():
    model = adapted()
    data = Protocols(TRAIN["steps"] * TRAIN["batch"], TRAIN["length"], BASE["vocab_size"])
    loader = DataLoader(
        data, TRAIN["batch"], shuffle=True, num_workers=TRAIN["workers"], pin_memory=DEVICE == "cuda"
    )
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=TRAIN["lr"], weight_decay=0.0, fused=True)
    schedule = get_cosine_schedule_with_warmup(optimizer, 20, TRAIN["steps"])
    losses, begin = [], time.time()
    for step, batch in enumerate(loader, 1):
        batch = {k: v.to(DEVICE, non_blocking=True) for k, v in batch.items()}
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
        if step % TRAIN["report"] == 0:
            mean = torch.stack(losses).mean().item()
            losses.clear()
            print(f"{step:4d} loss {mean:.3f} perplexity {math.exp(mean):.0f} {time.time() - begin:.1f} s")


if __name__ == "__main__":
    main()
