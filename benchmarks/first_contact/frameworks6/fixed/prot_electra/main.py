"""Fine-tune a ProtElectra sized encoder for three-state secondary structure (token classification)."""

import logging
import os
import sys
import tempfile
from dataclasses import dataclass, field
from typing import Optional

import torch
import transformers
from transformers import (
    ElectraConfig,
    ElectraForTokenClassification,
    HfArgumentParser,
    Trainer,
    TrainingArguments,
    set_seed,
)

from data import LABELS, DataCollatorForChains, SecondaryStructureDataset

logger = logging.getLogger(__name__)
SMALL = os.environ.get("SMALL") == "1"


@dataclass
class ModelArguments:
    hidden_size: int = field(default=64 if SMALL else 768)
    num_layers: int = field(default=2 if SMALL else 24)
    num_heads: int = field(default=4 if SMALL else 12)


@dataclass
class DataArguments:
    num_chains: int = field(default=400 if SMALL else 12000)
    max_seq_length: int = field(default=128 if SMALL else 1024)
    pad_to_max_length: bool = field(
        default=False,
        metadata={"help": "Whether to pad all chains to `max_seq_length`. If False, pads to the longest of the batch."},
    )


@dataclass
class ProteinTrainingArguments(TrainingArguments):
    output_dir: Optional[str] = field(default=None)
    per_device_train_batch_size: int = field(default=4 if SMALL else 32)
    num_train_epochs: float = field(default=4)
    learning_rate: float = field(default=2e-5)
    weight_decay: float = field(default=0.01)
    bf16: bool = field(default=True)
    use_cpu: bool = field(default=not torch.cuda.is_available())
    dataloader_num_workers: int = field(default=1 if SMALL else 6)
    accelerator_config: Optional[dict] = field(default_factory=lambda: {"non_blocking": True})
    dataloader_persistent_workers: bool = field(default=True)
    train_sampling_strategy: str = field(default="group_by_length")
    torch_empty_cache_steps: Optional[int] = field(default=None)
    logging_steps: float = field(default=50)
    logging_nan_inf_filter: bool = field(default=False)
    save_strategy: str = field(default="no")
    report_to: str = field(default="none")
    disable_tqdm: bool = field(default=True)


def main():
    parser = HfArgumentParser((ModelArguments, DataArguments, ProteinTrainingArguments))
    defaults = ["--output_dir", tempfile.mkdtemp(prefix="protein_ss_")]
    model_args, data_args, training_args = parser.parse_args_into_dataclasses(args=defaults + sys.argv[1:])
    logging.basicConfig(level=logging.WARNING)
    transformers.utils.logging.set_verbosity_error()
    set_seed(training_args.seed)

    train_dataset = SecondaryStructureDataset(data_args.num_chains, data_args.max_seq_length - 2)
    config = ElectraConfig(
        vocab_size=32,
        pad_token_id=1,
        embedding_size=model_args.hidden_size,
        hidden_size=model_args.hidden_size,
        num_hidden_layers=model_args.num_layers,
        num_attention_heads=model_args.num_heads,
        intermediate_size=4 * model_args.hidden_size,
        max_position_embeddings=data_args.max_seq_length,
        num_labels=len(LABELS),
    )
    model = ElectraForTokenClassification(config)

    trainer = Trainer(
        model=model,
        args=training_args,
        train_dataset=train_dataset,
        data_collator=DataCollatorForChains(
            padding="max_length" if data_args.pad_to_max_length else "longest",
            max_length=data_args.max_seq_length,
        ),
    )
    result = trainer.train()
    print(result.metrics)


if __name__ == "__main__":
    main()
