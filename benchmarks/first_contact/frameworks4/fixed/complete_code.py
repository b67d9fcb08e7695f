"""Inline code completion for a folder of unfinished functions, in batches.

    python complete_code.py --batch-size 16 --new-tokens 12
"""
import argparse
import os
import random
import time

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SMALL = os.environ.get("SMALL") == "1"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
NAMES = ["count", "total", "row", "path", "item", "left", "right", "cache", "queue", "seen", "node", "edge"]
WORDS = ["def", "return", "if", "else", "for", "in", "while", "not", "and", "(", ")", ":", "=", "+", "-", "[", "]", ","]

GENERATION = {
    "do_sample": False,
    "num_beams": 1,
    "use_cache": True,
    "cache_implementation": "static" if DEVICE == "cuda" else None,
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=3 if SMALL else 16)
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--new-tokens", type=int, default=12)
    parser.add_argument("--context", type=int, default=64 if SMALL else 768, help="words kept before the cursor")
    parser.add_argument("--seed", type=int, default=11)
    return parser.parse_args()


def make_tokenizer():
    words = ["<pad>", "<s>", "</s>", "<unk>"] + WORDS + [f"{name}{i}" for name in NAMES for i in range(40)]
    core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>",
        padding_side="left", truncation_side="left",
    )


def make_model():
    config = LlamaConfig(
        vocab_size=512,
        hidden_size=128 if SMALL else 1024,
        intermediate_size=344 if SMALL else 2816,
        num_hidden_layers=4 if SMALL else 14,
        num_attention_heads=4 if SMALL else 16,
        num_key_value_heads=4 if SMALL else 16,
        max_position_embeddings=2048,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=None,
        attn_implementation="sdpa",
    )
    model = LlamaForCausalLM(config).eval()
    return model.to(DEVICE, torch.bfloat16 if DEVICE == "cuda" else torch.float32)


def unfinished_functions(count, context, seed):
    rng = random.Random(seed)
    for _ in range(count):
        words = []
        for _ in range(context + rng.randint(0, 60)):
            words.append(rng.choice(WORDS) if rng.random() < 0.6 else f"{rng.choice(NAMES)}{rng.randrange(40)}")
        yield " ".join(words)


class Completer:
    def __init__(self, model, tokenizer, context, **generation):
        self.model, self.tokenizer = model, tokenizer
        self.context = context
        self.generation = dict(generation, pad_token_id=tokenizer.pad_token_id)

    def __call__(self, prefixes):
        inputs = self.tokenizer(
            prefixes, return_tensors="pt", padding="longest", truncation=True, max_length=self.context,
            return_token_type_ids=False,
        ).to(self.model.device)
        output = self.model.generate(**inputs, **self.generation)
        fresh = output[:, inputs["input_ids"].shape[1] :]
        return self.tokenizer.batch_decode(fresh, skip_special_tokens=True)


def main():
    args = arguments()
    torch.manual_seed(args.seed)
    completer = Completer(
        make_model(), make_tokenizer(), args.context, max_new_tokens=args.new_tokens, **GENERATION
    )
    prefixes = list(unfinished_functions(args.batches * args.batch_size, args.context, args.seed))

    started = time.perf_counter()
    for number in range(args.batches):
        if number == 2:
            started = time.perf_counter()
        at = number * args.batch_size
        completions = completer(prefixes[at : at + args.batch_size])
        if number % 10 == 0:
            print(f"batch {number}: {completions[0]!r}", flush=True)
    seconds = time.perf_counter() - started
    print(f"{1000 * seconds / (args.batches - 2):.1f} ms a batch")


if __name__ == "__main__":
    main()
