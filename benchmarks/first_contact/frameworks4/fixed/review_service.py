"""A worker that scores hotel reviews as they come from a queue.

The queue of the real service is replaced by a generator with a seed. Every poll brings some hundred reviews.
"""
import collections
import functools
import itertools
import os
import random
import time

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PreTrainedTokenizerFast,
    TextClassificationPipeline,
    pipeline,
)

SMALL = os.environ.get("SMALL") == "1"
POLLS = 50 if SMALL else 80
TRIPLES = (8, 9) if SMALL else (30, 33)
POLL_SIZE = 24 if SMALL else 128

ADJECTIVES = "clean dirty quiet loud friendly rude warm cold large tiny cheap modern old bright dark".split()
NOUNS = "room bed shower breakfast staff lobby view street pool price window kitchen garden door".split()
GLUE = "the was and but very not with a our we had in at of it were".split()


class Settings:
    labels = ("bad", "mixed", "good")
    max_words = 128
    hidden = 192 if SMALL else 1024
    layers = 4 if SMALL else 24
    heads = 3 if SMALL else 16

    call = {
        "top_k": 1,
        "truncation": True,
        "max_length": max_words,
        "batch_size": 128,
    }


def load_tokenizer():
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"] + ADJECTIVES + NOUNS + GLUE
    vocab = {word: number for number, word in enumerate(words)}
    core = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )


def load_model(settings):
    torch.manual_seed(5)
    config = BertConfig(
        vocab_size=30528,
        hidden_size=settings.hidden,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        intermediate_size=4 * settings.hidden,
        id2label=dict(enumerate(settings.labels)),
        label2id={label: number for number, label in enumerate(settings.labels)},
        attn_implementation="sdpa",
    )
    return BertForSequenceClassification(config).eval()


def queue(seed=5):
    rng = random.Random(seed)
    while True:
        words = []
        for _ in range(rng.randint(*TRIPLES)):
            words += [rng.choice(GLUE), rng.choice(ADJECTIVES), rng.choice(NOUNS)]
        yield {"id": rng.randrange(10**9), "text": " ".join(words)}


def poll(source, size):
    return list(itertools.islice(source, size))


def make_scorer(settings, device):
    classifier = pipeline(
        "text-classification",
        model=load_model(settings).to(torch.float16 if device.type == "cuda" else torch.float32),
        tokenizer=load_tokenizer(),
        pipeline_class=TextClassificationPipeline,
        device=device,
    )
    return functools.partial(classifier, **settings.call)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    score = make_scorer(Settings, device)
    source = queue()
    tally = collections.Counter()
    started = time.perf_counter()
    for number in range(POLLS):
        reviews = poll(source, POLL_SIZE)
        verdicts = score([review["text"] for review in reviews])
        tally.update(verdict[0]["label"] for verdict in verdicts)
        if number % 10 == 9:
            each = (time.perf_counter() - started) / 10
            print(f"poll {number + 1}: {1000 * each:.1f} ms each, {dict(tally)}", flush=True)
            started = time.perf_counter()


if __name__ == "__main__":
    main()
