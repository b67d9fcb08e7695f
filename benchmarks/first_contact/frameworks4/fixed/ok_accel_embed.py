"""Embeds patent claims with an encoder, on one or several devices (accelerate), and finds near duplicates.

    accelerate launch ok_accel_embed.py     or     python ok_accel_embed.py
"""
import argparse
import os
import time

import numpy as np
import torch
import torch.nn.functional as F
from accelerate import Accelerator, DataLoaderConfiguration
from torch.utils.data import DataLoader, Dataset
from transformers import RobertaConfig, RobertaModel, set_seed

SMALL = os.environ.get("SMALL") == "1"
PAD = 1


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--claims", type=int, default=2600 if SMALL else 50000)
    parser.add_argument("--tokens_a_batch", type=int, default=2048 if SMALL else 65536)
    parser.add_argument("--log_every", type=int, default=20)
    parser.add_argument("--seed", type=int, default=41)
    return parser.parse_args()


def tokenized_claims(count, vocab, seed):
    rng = np.random.default_rng(seed)
    lengths = np.clip(rng.lognormal(4.4, 0.5, size=count), 16, 384).astype(int)
    claims = [rng.integers(5, vocab, size=length) for length in lengths]
    for place in range(50, count, 50):
        claims[place] = claims[place - 7].copy()
        claims[place][:3] = 5
    return claims


class ClaimBatches(Dataset):
    """Batches of claims of similar length, each of about as many tokens."""

    def __init__(self, claims, tokens_a_batch):
        self.claims = claims
        order = np.argsort([len(claim) for claim in claims], kind="stable")[::-1]
        self.groups, at = [], 0
        while at < len(order):
            width = -(-len(claims[order[at]]) // 8) * 8
            size = max(1, tokens_a_batch // width)
            self.groups.append((order[at : at + size], width))
            at += size

    def __len__(self):
        return len(self.groups)

    def __getitem__(self, index):
        rows, width = self.groups[index]
        ids = np.full((len(rows), width), PAD)
        for place, row in enumerate(rows):
            ids[place, : len(self.claims[row])] = self.claims[row]
        return {"rows": torch.from_numpy(rows.copy()), "input_ids": torch.from_numpy(ids)}


def make_encoder(vocab):
    config = RobertaConfig(
        vocab_size=vocab,
        hidden_size=192 if SMALL else 1024,
        num_hidden_layers=4 if SMALL else 24,
        num_attention_heads=3 if SMALL else 16,
        intermediate_size=768 if SMALL else 4096,
        max_position_embeddings=400,
        pad_token_id=PAD,
        attn_implementation="sdpa",
    )
    return RobertaModel(config, add_pooling_layer=False).eval()


@torch.inference_mode()
def embed(accelerator, model, loader, log_every):
    rows, vectors = [], []
    then = time.perf_counter()
    for step, batch in enumerate(loader):
        mask = batch["input_ids"] != PAD
        states = model(input_ids=batch["input_ids"], attention_mask=mask).last_hidden_state
        weight = mask.unsqueeze(-1).to(states.dtype)
        pooled = (states * weight).sum(1) / weight.sum(1)
        vectors.append(F.normalize(pooled.float(), dim=1))
        rows.append(batch["rows"])
        if step % log_every == log_every - 1:
            if accelerator.device.type == "cuda":
                torch.cuda.synchronize()
            now = time.perf_counter()
            accelerator.print(f"batch {step + 1}: {1000 * (now - then) / log_every:.1f} ms each", flush=True)
            then = now
    rows, vectors = torch.cat(rows), torch.cat(vectors)
    if accelerator.num_processes > 1:
        rows = accelerator.gather(accelerator.pad_across_processes(rows, pad_index=-1))
        vectors = accelerator.gather(accelerator.pad_across_processes(vectors))
    return rows.cpu(), vectors.cpu()


def near_duplicates(rows, vectors, count=5):
    some = vectors[:200]
    scores = some @ vectors.T
    scores[torch.arange(len(some)), torch.arange(len(some))] = -1
    best, where = scores.max(dim=1)
    for place in best.topk(count).indices.tolist():
        yield int(rows[place]), int(rows[where[place]]), float(best[place])


def main():
    args = parse_args()
    set_seed(args.seed)
    loading = DataLoaderConfiguration(non_blocking=True, even_batches=False)
    accelerator = Accelerator(dataloader_config=loading)
    vocab = 4000 if SMALL else 30528
    model = make_encoder(vocab)
    if accelerator.device.type == "cuda":
        model = model.to(torch.bfloat16)
        for layer in model.encoder.layer:
            layer.compile(dynamic=True)
    batches = ClaimBatches(tokenized_claims(args.claims, vocab, args.seed), args.tokens_a_batch)
    loader = DataLoader(
        batches, batch_size=None, num_workers=1 if SMALL else 4, pin_memory=accelerator.device.type == "cuda"
    )
    model, loader = accelerator.prepare(model, loader)
    accelerator.print(f"{len(batches)} batches", flush=True)
    rows, vectors = embed(accelerator, model, loader, args.log_every)
    for first, second, score in near_duplicates(rows, vectors):
        accelerator.print(f"claims {first} and {second}: {score:.3f}")


if __name__ == "__main__":
    main()
