#!/usr/bin/env python
# Pretrains a small decoder on packed protein sequences (residues joined to blocks of one length).
import os
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, default_data_collator, set_seed

SMALL = os.environ.get("SMALL") == "1"
CUDA = torch.cuda.is_available()
BLOCK = 128 if SMALL else 1024


class PackedProteins(Dataset):
    """One long tensor of residues, cut into blocks."""

    def __init__(self, blocks, vocab, seed=0):
        g = torch.Generator().manual_seed(seed)
        steps = torch.randint(1, 4, (blocks * BLOCK,), generator=g)
        self.residues = (steps.cumsum(0) % vocab).view(blocks, BLOCK)

    def __len__(self):
        return len(self.residues)

    def __getitem__(self, i):
        block = self.residues[i]
        return {"input_ids": block, "labels": block}


def build():
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=192 if SMALL else 1024,
        intermediate_size=512 if SMALL else 2816,
        num_hidden_layers=3 if SMALL else 12,
        num_attention_heads=3 if SMALL else 16,
        num_key_value_heads=3 if SMALL else 8,
        max_position_embeddings=BLOCK,
        attn_implementation="sdpa",
        use_cache=False,
        bos_token_id=1,
        eos_token_id=2,
    )
    return LlamaForCausalLM(config)


def main():
    set_seed(7)
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="protein-"),
        per_device_train_batch_size=8 if SMALL else 32,
        max_steps=60 if SMALL else 300,
        learning_rate=3e-4,
        lr_scheduler_type="cosine",
        warmup_steps=20,
        weight_decay=0.1,
        adam_beta2=0.95,
        max_grad_norm=1.0,
        optim="adamw_torch_fused",
        bf16=CUDA,
        tf32=True if CUDA else None,
        dataloader_num_workers=0 if SMALL else 4,
        dataloader_persistent_workers=not SMALL,
        dataloader_pin_memory=CUDA,
        dataloader_drop_last=True,
        logging_steps=20 if SMALL else 100,
        logging_nan_inf_filter=False,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=build(),
        args=args,
        train_dataset=PackedProteins(600 if SMALL else 9728, vocab=64),
        data_collator=default_data_collator,
    )
    print(f"{sum(p.numel() for p in trainer.model.parameters()) / 1e6:.1f} M parameters")
    out = trainer.train()
    print(f"training loss {out.training_loss:.4f}")


if __name__ == "__main__":
    main()
