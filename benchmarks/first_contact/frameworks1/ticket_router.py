"""Route support tickets to one of the queues: a small BERT trained from scratch."""
import os
import random
import sys
from dataclasses import dataclass, field

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DataCollatorWithPadding,
    HfArgumentParser,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

SMALL = os.environ.get("SMALL") == "1"


@dataclass
class ModelArguments:
    hidden_size: int = field(default=64 if SMALL else 768, metadata={"help": "Width of the encoder"})
    num_layers: int = field(default=2 if SMALL else 6)
    num_heads: int = field(default=4 if SMALL else 12)


@dataclass
class DataArguments:
    num_tickets: int = field(default=240 if SMALL else 5120)
    num_queues: int = field(default=24)
    vocab_words: int = field(default=500 if SMALL else 30000)
    max_seq_length: int = field(default=48 if SMALL else 384, metadata={"help": "Longer tickets are cut"})


@dataclass
class RouterTrainingArguments(TrainingArguments):  # expert: bf16=True; train_sampling_strategy="group_by_length"
    output_dir: str = field(default="/tmp/ticket_router")
    per_device_train_batch_size: int = field(default=8 if SMALL else 64)
    num_train_epochs: float = field(default=1.0)
    learning_rate: float = field(default=1e-4)
    warmup_steps: float = field(default=20)
    weight_decay: float = field(default=0.01)
    dataloader_num_workers: int = field(default=0 if SMALL else 4)
    logging_steps: float = field(default=20)
    logging_nan_inf_filter: bool = field(default=False)
    save_strategy: str = field(default="no")
    report_to: str = field(default="none")


def build_tokenizer(words):
    vocab = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2}
    for word in words:
        vocab[word] = len(vocab)
    backend = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]"
    )


class TicketDataset(Dataset):
    def __init__(self, args: DataArguments, words, tokenizer):
        rng = random.Random(7)
        texts, self.labels = [], []
        for _ in range(args.num_tickets):
            queue = rng.randrange(args.num_queues)
            size = max(6, min(args.max_seq_length - 1, int(rng.lognormvariate(4.2, 0.8))))
            body = rng.choices(words, k=size)
            body[0] = words[queue]
            texts.append("[CLS] " + " ".join(body))
            self.labels.append(queue)
        encoded = tokenizer(texts, truncation=True, max_length=args.max_seq_length)
        self.input_ids = encoded["input_ids"]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        ids = self.input_ids[i]
        return {"input_ids": ids, "attention_mask": [1] * len(ids), "labels": self.labels[i]}


def main():
    parser = HfArgumentParser((ModelArguments, DataArguments, RouterTrainingArguments))
    model_args, data_args, training_args = parser.parse_args_into_dataclasses(args=sys.argv[1:])
    set_seed(training_args.seed)

    words = [f"w{i}" for i in range(data_args.vocab_words)]
    tokenizer = build_tokenizer(words)
    train_dataset = TicketDataset(data_args, words, tokenizer)

    config = BertConfig(
        vocab_size=(len(tokenizer) + 63) // 64 * 64,
        hidden_size=model_args.hidden_size,
        num_hidden_layers=model_args.num_layers,
        num_attention_heads=model_args.num_heads,
        intermediate_size=4 * model_args.hidden_size,
        num_labels=data_args.num_queues,
        pad_token_id=0,
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=training_args,
        train_dataset=train_dataset,
        data_collator=DataCollatorWithPadding(tokenizer, pad_to_multiple_of=8),
        processing_class=tokenizer,
    )
    result = trainer.train()
    trainer.log_metrics("train", result.metrics)


if __name__ == "__main__":
    main()
