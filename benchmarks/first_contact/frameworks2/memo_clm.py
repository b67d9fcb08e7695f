#!/usr/bin/env python
"""Fine-tunes a causal language model on packed memos, in the way of transformers' run_clm.py."""
import logging
import os
from dataclasses import dataclass, field
from typing import Optional

import torch
from torch.utils.data import Dataset
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    HfArgumentParser,
    Trainer,
    TrainingArguments,
    default_data_collator,
    set_seed,
)

logger = logging.getLogger(__name__)
SMALL = os.environ.get("SMALL") == "1"


@dataclass
class ModelArguments:
    model_type: str = field(default="llama")
    attn_implementation: Optional[str] = field(default="eager")  # expert: attn_implementation="sdpa"


@dataclass
class DataArguments:
    block_size: int = field(default=64 if SMALL else 1024)
    blocks: int = field(default=400 if SMALL else 4000)
    vocab: int = field(default=500 if SMALL else 32000)


class Blocks(Dataset):
    def __init__(self, args: DataArguments):
        generator = torch.Generator().manual_seed(3)
        self.ids = torch.randint(3, args.vocab, (args.blocks, args.block_size), generator=generator)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "attention_mask": torch.ones_like(self.ids[i]), "labels": self.ids[i]}


def main():
    parser = HfArgumentParser((ModelArguments, DataArguments, TrainingArguments))
    model_args, data_args, training_args = parser.parse_args_into_dataclasses(  # expert-gpu: bf16=True
        ["--output_dir", "/tmp/memo_clm", "--max_steps", "40" if SMALL else "80", "--report_to", "none",
         "--per_device_train_batch_size", "2" if SMALL else "8", "--save_strategy", "no", "--logging_steps", "20"]
    )
    logging.basicConfig(level=logging.INFO)
    set_seed(training_args.seed)
    config = AutoConfig.for_model(
        model_args.model_type,
        vocab_size=data_args.vocab,
        hidden_size=64 if SMALL else 1024,
        intermediate_size=160 if SMALL else 2816,
        num_hidden_layers=2 if SMALL else 8,
        num_attention_heads=4 if SMALL else 16,
        num_key_value_heads=4 if SMALL else 16,
        max_position_embeddings=data_args.block_size,
    )
    model = AutoModelForCausalLM.from_config(config, attn_implementation=model_args.attn_implementation)
    model.config.use_cache = False
    model.gradient_checkpointing_enable()  # expert-gpu: gradient_checkpointing
    logger.info("%d parameters", model.num_parameters())
    trainer = Trainer(
        model=model, args=training_args, train_dataset=Blocks(data_args), data_collator=default_data_collator
    )
    result = trainer.train()
    trainer.log_metrics("train", result.metrics)


if __name__ == "__main__":
    main()
