# Llama-style language model on packed blocks of tokens. Everything is in RECIPE; pass another
# one as a JSON file to override parts of it:  python block_lm.py my.json
import json
import os
import sys

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import AutoModelForCausalLM, LlamaConfig, Trainer, TrainerCallback, TrainingArguments
from transformers import default_data_collator

small = bool(int(os.environ.get("SMALL", "0")))

RECIPE = {
    "data": {"vocab": 512 if small else 32000, "block": 64 if small else 1024, "blocks": 80 if small else 2048},
    "model": {
        "hidden_size": 64 if small else 1024,
        "intermediate_size": 128 if small else 2816,
        "num_hidden_layers": 2 if small else 8,
        "num_attention_heads": 4 if small else 16,
        "num_key_value_heads": 4 if small else 16,
        "tie_word_embeddings": True,
        "attn_implementation": "eager",  # expert: attn_implementation="sdpa"
    },
    "training": {  # expert: torch_compile=True
        "output_dir": "/tmp/block_lm",
        "max_steps": 30 if small else 70,
        "per_device_train_batch_size": 2 if small else 16,
        "learning_rate": 3e-4,
        "lr_scheduler_type": "cosine",
        "warmup_steps": 10,
        "weight_decay": 0.1,
        "adam_beta2": 0.95,
        "bf16": torch.cuda.is_available(),
        "gradient_checkpointing": True,  # expert: gradient_checkpointing=False
        "dataloader_num_workers": 0 if small else 2,
        "dataloader_drop_last": True,
        "accelerator_config": {"non_blocking": True},
        "logging_steps": 10,
        "logging_nan_inf_filter": False,
        "save_strategy": "no",
        "report_to": "none",
    },
}


class PackedBlocks(Dataset):
    """A flat array of token ids, cut into blocks."""

    def __init__(self, vocab, block, blocks, seed=0):
        rng = np.random.default_rng(seed)
        walk = rng.integers(-3, 4, size=block * blocks).cumsum() % vocab
        self.ids = torch.from_numpy(walk.astype(np.int64)).view(blocks, block)

    def __len__(self):
        return self.ids.shape[0]

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i]}


class Throughput(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs and "loss" in logs:
            print(f"[{state.global_step:4d}] loss {logs['loss']}  lr {logs['learning_rate']}", flush=True)


def merged(base, extra):
    out = dict(base)
    for key, value in extra.items():
        out[key] = merged(base[key], value) if isinstance(value, dict) and key in base else value
    return out


recipe = RECIPE
if len(sys.argv) > 1:
    with open(sys.argv[1]) as handle:
        recipe = merged(RECIPE, json.load(handle))

data = PackedBlocks(**recipe["data"])
arch = dict(recipe["model"])
attn = arch.pop("attn_implementation")
config = LlamaConfig(
    vocab_size=recipe["data"]["vocab"],
    max_position_embeddings=recipe["data"]["block"],
    use_cache=False,
    bos_token_id=1,
    eos_token_id=2,
    **arch,
)
model = AutoModelForCausalLM.from_config(config, attn_implementation=attn)
print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f} M parameters")

training_args = TrainingArguments(**recipe["training"])
trainer = Trainer(
    model=model,
    args=training_args,
    train_dataset=data,
    data_collator=default_data_collator,
    callbacks=[Throughput()],
)
trainer.train()
