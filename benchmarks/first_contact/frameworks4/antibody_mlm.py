"""Masked language modelling on antibody heavy chains (VH), after the transformers example `run_mlm.py`.

    python antibody_mlm.py [--num_hidden_layers 6 --learning_rate 2e-4 ...]
"""
import logging
import os
import random
import tempfile
from dataclasses import dataclass, field
from typing import Optional

import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForMaskedLM,
    DataCollatorForLanguageModeling,
    HfArgumentParser,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

logger = logging.getLogger(__name__)
SMALL = os.environ.get("SMALL") == "1"
CUDA = torch.cuda.is_available()
RESIDUES = "ACDEFGHIKLMNPQRSTVWY"


@dataclass
class ModelArguments:
    """Which model we are going to train from scratch."""

    hidden_size: int = field(default=128 if SMALL else 768, metadata={"help": "Width of the encoder."})
    num_hidden_layers: int = field(default=4 if SMALL else 12, metadata={"help": "Depth of the encoder."})
    head_size: int = field(default=32 if SMALL else 64)
    attn_implementation: Optional[str] = field(default="sdpa")


@dataclass
class DataTrainingArguments:
    """What data we are going to input our model for training."""

    max_seq_length: int = field(default=256, metadata={"help": "Longer sequences are truncated."})
    pad_to_max_length: bool = field(  # expert: pad_to_max_length=False (padding to the longest of the batch)
        default=True,
        metadata={"help": "Whether to pad all samples to `max_seq_length`, or dynamically in the batch."},
    )
    mlm_probability: float = field(default=0.15)
    num_sequences: int = field(default=600 if SMALL else 20000)


@dataclass
class RunArguments(TrainingArguments):
    output_dir: Optional[str] = field(default_factory=tempfile.mkdtemp)
    per_device_train_batch_size: int = field(default=4 if SMALL else 256)
    max_steps: int = field(default=60 if SMALL else 100)
    learning_rate: float = field(default=4e-4)
    lr_scheduler_type: str = field(default="cosine")
    warmup_steps: float = field(default=10)
    weight_decay: float = field(default=0.01)
    bf16: bool = field(default=CUDA)
    gradient_checkpointing: bool = field(default=True)  # expert: gradient_checkpointing=False
    logging_steps: float = field(default=20)
    logging_nan_inf_filter: bool = field(default=False)
    dataloader_num_workers: int = field(default=1 if SMALL else 8)
    dataloader_persistent_workers: bool = field(default=True)
    save_strategy: str = field(default="no")
    disable_tqdm: Optional[bool] = field(default=True)
    seed: int = field(default=7)


def build_tokenizer(max_length):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + list(RESIDUES) + ["X", "-", "."]
    vocab = {word: index for index, word in enumerate(words)}
    core = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", vocab["[CLS]"]), ("[SEP]", vocab["[SEP]"])]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core, model_max_length=max_length, pad_token="[PAD]", unk_token="[UNK]",
        cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]",
    )


def heavy_chains(count, seed):
    """Framework regions from one germline with mutations, and a random CDR3."""
    rng = random.Random(seed)
    germline = [rng.choice(RESIDUES) for _ in range(98)]
    for _ in range(count):
        frame = [rng.choice(RESIDUES) if rng.random() < 0.08 else residue for residue in germline]
        cdr3 = rng.choices(RESIDUES, k=rng.randint(10, 20))
        yield "".join(frame + cdr3 + list("WGQGTLVTVSS"))


class TokenizedChains(torch.utils.data.Dataset):
    def __init__(self, tokenizer, args, seed):
        texts = list(heavy_chains(args.num_sequences, seed))
        padding = "max_length" if args.pad_to_max_length else False
        self.rows = tokenizer(
            texts, padding=padding, truncation=True, max_length=args.max_seq_length,
            return_special_tokens_mask=True, return_token_type_ids=False,
        )

    def __len__(self):
        return len(self.rows["input_ids"])

    def __getitem__(self, index):
        return {key: values[index] for key, values in self.rows.items()}


def main():
    parser = HfArgumentParser((ModelArguments, DataTrainingArguments, RunArguments))
    model_args, data_args, training_args = parser.parse_args_into_dataclasses()
    logging.basicConfig(format="%(asctime)s %(name)s: %(message)s", level=logging.INFO)
    set_seed(training_args.seed)

    tokenizer = build_tokenizer(data_args.max_seq_length)
    train_dataset = TokenizedChains(tokenizer, data_args, training_args.seed)
    logger.info("%d chains", len(train_dataset))

    config = BertConfig(
        vocab_size=32,
        hidden_size=model_args.hidden_size,
        num_hidden_layers=model_args.num_hidden_layers,
        num_attention_heads=model_args.hidden_size // model_args.head_size,
        intermediate_size=4 * model_args.hidden_size,
        max_position_embeddings=data_args.max_seq_length,
        attention_probs_dropout_prob=0.0,
        attn_implementation=model_args.attn_implementation,
    )
    model = BertForMaskedLM(config)
    print(f"{model.num_parameters() / 1e6:.1f} M parameters", flush=True)

    collator = DataCollatorForLanguageModeling(
        tokenizer=tokenizer, mlm_probability=data_args.mlm_probability, pad_to_multiple_of=8
    )
    trainer = Trainer(
        model=model,
        args=training_args,
        train_dataset=train_dataset,
        data_collator=collator,
        processing_class=tokenizer,
    )
    result = trainer.train()
    seconds = result.metrics["train_runtime"] / result.global_step
    print(f"loss {result.training_loss:.3f}, {1000 * seconds:.1f} ms a step")


if __name__ == "__main__":
    main()
