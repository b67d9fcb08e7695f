"""Fine-tune a BERT classifier on news articles with the Trainer."""
import os
import random
import tempfile
from dataclasses import dataclass, field

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DataCollatorWithPadding,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

SMALL = os.environ.get("SMALL") == "1"
LABELS = ["World", "Sports", "Business", "Sci/Tech"]


@dataclass
class DataArguments:
    max_seq_length: int = field(default=48 if SMALL else 224)
    train_samples: int = field(default=64 if SMALL else 12800)
    min_words: int = 8 if SMALL else 40
    max_words: int = 40 if SMALL else 220


@dataclass
class ModelArguments:
    hidden_size: int = 32 if SMALL else 768
    num_hidden_layers: int = 2 if SMALL else 12
    num_attention_heads: int = 2 if SMALL else 12
    intermediate_size: int = 64 if SMALL else 3072
    vocab_size: int = 30522


def build_tokenizer(vocab_size, max_length):
    """A word-level tokenizer over a made-up vocabulary, with BERT's special tokens."""
    vocab = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3}
    for i in range(4, vocab_size):
        vocab[f"w{i}"] = i
    tok = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    tok.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tok.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tok,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=max_length,
    )


def load_articles(args, vocab_size):
    rng = random.Random(13)
    texts, labels = [], []
    for _ in range(args.train_samples):
        label = rng.randrange(len(LABELS))
        count = rng.randint(args.min_words, args.max_words)
        low = 4 + label * 500
        words = [f"w{rng.randrange(low, vocab_size)}" for _ in range(count)]
        texts.append(" ".join(words))
        labels.append(label)
    return texts, labels


class NewsDataset(Dataset):
    def __init__(self, encodings, labels):
        self.input_ids = encodings["input_ids"]
        self.attention_mask = encodings["attention_mask"]
        self.labels = labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, idx):
        return {
            "input_ids": self.input_ids[idx],
            "attention_mask": self.attention_mask[idx],
            "labels": self.labels[idx],
        }


def main():
    set_seed(42)
    data_args, model_args = DataArguments(), ModelArguments()
    tokenizer = build_tokenizer(model_args.vocab_size, data_args.max_seq_length)

    def preprocess(texts):
        return tokenizer(
            texts,
            padding="max_length",  # flaw: padded-batches
            truncation=True,
            max_length=data_args.max_seq_length,
        )

    texts, labels = load_articles(data_args, model_args.vocab_size)
    train_dataset = NewsDataset(preprocess(texts), labels)

    config = BertConfig(
        vocab_size=model_args.vocab_size,
        hidden_size=model_args.hidden_size,
        num_hidden_layers=model_args.num_hidden_layers,
        num_attention_heads=model_args.num_attention_heads,
        intermediate_size=model_args.intermediate_size,
        num_labels=len(LABELS),
        id2label=dict(enumerate(LABELS)),
        label2id={name: i for i, name in enumerate(LABELS)},
    )
    model = BertForSequenceClassification(config)

    training_args = TrainingArguments(  # flaw: fp32-matmul
        output_dir=tempfile.mkdtemp(prefix="newscat_"),
        per_device_train_batch_size=8 if SMALL else 128,
        num_train_epochs=2 if SMALL else 8,
        learning_rate=3e-5,
        weight_decay=0.01,
        warmup_steps=100,
        lr_scheduler_type="linear",
        optim="adamw_torch_fused",
        train_sampling_strategy="group_by_length",
        dataloader_num_workers=2 if SMALL else 4,
        dataloader_persistent_workers=True,
        dataloader_pin_memory=torch.cuda.is_available(),
        accelerator_config={"non_blocking": True},
        logging_steps=100,
        logging_nan_inf_filter=False,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=model,
        args=training_args,
        train_dataset=train_dataset,
        data_collator=DataCollatorWithPadding(tokenizer, pad_to_multiple_of=8),
    )
    result = trainer.train()
    print("train loss", np.round(result.training_loss, 4))


if __name__ == "__main__":
    main()
