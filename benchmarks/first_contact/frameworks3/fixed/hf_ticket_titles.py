# Writes a short title for each support ticket of an export (offline, one pass over all tickets).
import argparse
import os
import time

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel

SMALL = os.environ.get("SMALL") == "1"
PAD, BOS = 0, 1


class ByteTokenizer:
    """Bytes plus three special tokens, padded on the left for generation."""

    def __call__(self, texts, padding="longest", max_length=512):
        rows = [[BOS] + [b + 3 for b in t.encode()][: max_length - 1] for t in texts]
        width = max_length if padding == "max_length" else max(map(len, rows))
        ids = torch.tensor([[PAD] * (width - len(r)) + r for r in rows])
        return {"input_ids": ids, "attention_mask": (ids != PAD).long()}

    def decode(self, ids):
        return bytes(i - 3 for i in ids if i >= 3).decode(errors="replace")


def tickets(count, longest, seed):
    rng = np.random.default_rng(seed)
    words = "printer login invoice broken cannot since update screen blue slow vpn again please reset".split()
    for _ in range(count):
        text = " ".join(rng.choice(words, int(rng.gamma(2.5, longest / 55)) + 3))
        yield text[: longest - 1]


def batched(rows, size):
    batch = []
    for row in rows:
        batch.append(row)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--tickets", type=int, default=640 if SMALL else 9600)
    p.add_argument("--batch-size", type=int, default=8 if SMALL else 32)
    p.add_argument("--max-length", type=int, default=192 if SMALL else 768)
    p.add_argument("--new-tokens", type=int, default=8)
    p.add_argument("--seed", type=int, default=3)
    return p.parse_args()


def load_model(max_length, new_tokens, device):
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=259,
        n_positions=max_length + new_tokens,
        n_embd=128 if SMALL else 1024,
        n_layer=2 if SMALL else 8,
        n_head=4 if SMALL else 16,
        bos_token_id=BOS,
        eos_token_id=None,
        pad_token_id=PAD,
        dtype=torch.bfloat16 if torch.cuda.is_available() else torch.float32,
    )
    return GPT2LMHeadModel._from_config(config).eval().to(device)


def main():
    args = parse()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = load_model(args.max_length, args.new_tokens, device)
    tokenizer = ByteTokenizer()
    titles, start = [], time.perf_counter()
    rows = sorted(tickets(args.tickets, args.max_length, args.seed), key=len)
    for number, texts in enumerate(batched(rows, args.batch_size)):
        batch = tokenizer(
            texts,
            padding="longest",
            max_length=args.max_length,
        )
        batch = {k: v.to(device) for k, v in batch.items()}
        out = model.generate(**batch, max_new_tokens=args.new_tokens, do_sample=False)
        new = out[:, batch["input_ids"].shape[1] :].cpu().tolist()
        titles += [tokenizer.decode(ids) for ids in new]
        if number % 20 == 0:
            rate = len(titles) / (time.perf_counter() - start)
            print(f"batch {number}: {len(titles)} titles, {rate:.0f} a second")
    print(f"{len(titles)} titles, e.g. {titles[-1]!r}")


if __name__ == "__main__":
    main()
