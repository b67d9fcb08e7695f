"""Token tagger that finds names, phone numbers and addresses in customer mails."""
import os
import tempfile
from dataclasses import dataclass, field

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import HfArgumentParser, RobertaConfig, RobertaForTokenClassification
from transformers import Trainer, TrainingArguments, set_seed

SMALL = os.environ.get("SMALL") == "1"
LABELS = ["O", "B-NAME", "I-NAME", "B-PHONE", "I-PHONE", "B-ADDR", "I-ADDR"]


@dataclass
class ModelArguments:
    hidden_size: int = 768
    num_layers: int = 12
    num_heads: int = 12
    max_seq_length: int = field(default=384, metadata={"help": "mails are cut here"})


@dataclass
class DataArguments:
    num_mails: int = 6000
    vocab_size: int = 30000
    mean_length: float = field(default=4.6, metadata={"help": "of the logarithm"})


SETTINGS = {
    "hidden_size": 128 if SMALL else 768,
    **({"num_layers": 2, "num_heads": 4} if SMALL else {"num_layers": 12, "num_heads": 12}),
    "max_seq_length": 128 if SMALL else 384,
    "num_mails": 1200 if SMALL else 6000,
    "vocab_size": 2000 if SMALL else 30000,
    "mean_length": 3.4 if SMALL else 4.6,
    "output_dir": tempfile.mkdtemp(prefix="redact-"),
    "per_device_train_batch_size": 16 if SMALL else 32,
    "max_steps": 60 if SMALL else 300,
    "learning_rate": 5e-5,
    "warmup_steps": 20,
    "weight_decay": 0.01,
    "bf16": False,  # expert-gpu: bf16=True
    "train_sampling_strategy": "random",  # expert: train_sampling_strategy="group_by_length"
    "dataloader_num_workers": 0 if SMALL else 4,
    "dataloader_persistent_workers": not SMALL,
    "logging_steps": 20 if SMALL else 50,
    "logging_nan_inf_filter": False,
    "save_strategy": "no",
    "disable_tqdm": True,
}


class Mails(Dataset):
    def __init__(self, args: DataArguments, max_length: int, seed: int):
        rng = np.random.default_rng(seed)
        lengths = np.exp(rng.normal(args.mean_length, 0.6, args.num_mails)).astype(int)
        self.rows = []
        for n in lengths.clip(8, max_length):
            ids = rng.integers(5, args.vocab_size, n)
            tags = np.where(ids % 11 == 0, ids % len(LABELS), 0)
            self.rows.append({"input_ids": ids.tolist(), "labels": tags.tolist()})

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class TagCollator:
    """Pads words and tags; the tags of the padding are left out of the loss."""

    def __init__(self, pad_id, padding, max_length, multiple_of=8):
        self.pad_id, self.padding = pad_id, padding
        self.max_length, self.multiple_of = max_length, multiple_of

    def __call__(self, rows):
        width = self.max_length
        if self.padding == "longest":
            longest = max(len(r["input_ids"]) for r in rows)
            width = min(width, -(-longest // self.multiple_of) * self.multiple_of)
        ids, tags = torch.full((len(rows), width), self.pad_id), torch.full((len(rows), width), -100)
        for i, row in enumerate(rows):
            for out, name in ((ids, "input_ids"), (tags, "labels")):
                out[i, : len(row[name])] = torch.tensor(row[name])
        return {"input_ids": ids, "attention_mask": (ids != self.pad_id).long(), "labels": tags}


def main():
    parser = HfArgumentParser((ModelArguments, DataArguments, TrainingArguments))
    model_args, data_args, args = parser.parse_dict(SETTINGS)
    set_seed(args.seed)
    config = RobertaConfig(
        vocab_size=data_args.vocab_size, hidden_size=model_args.hidden_size,
        num_hidden_layers=model_args.num_layers, num_attention_heads=model_args.num_heads,
        intermediate_size=4 * model_args.hidden_size, num_labels=len(LABELS),
        max_position_embeddings=model_args.max_seq_length + 2, pad_token_id=1,
    )
    collator = TagCollator(
        pad_id=config.pad_token_id,
        padding="max_length",  # expert: padding="longest"
        max_length=model_args.max_seq_length,
    )
    mails = Mails(data_args, model_args.max_seq_length, args.seed)
    trainer = Trainer(RobertaForTokenClassification(config), args, data_collator=collator, train_dataset=mails)
    result = trainer.train()
    print(f"loss {result.training_loss:.4f}, {result.metrics['train_steps_per_second']:.1f} steps/s")


if __name__ == "__main__":
    main()
