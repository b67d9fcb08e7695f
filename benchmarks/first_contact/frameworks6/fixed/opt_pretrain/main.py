import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
import torch
import yaml
from torch.utils.data import Dataset
from transformers import OPTConfig, OPTForCausalLM, Trainer, TrainerCallback, TrainingArguments
from transformers.utils import logging

logging.set_verbosity_error()


class PackedTokens(Dataset):
    """Windows of one long array of token numbers; documents follow one another, nothing is padded."""

    def __init__(self, path, block_size):
        self.tokens = np.memmap(path, dtype=np.uint16, mode="r")
        self.block_size = block_size

    def __len__(self):
        return len(self.tokens) // self.block_size

    def __getitem__(self, i):
        at = i * self.block_size
        ids = torch.from_numpy(self.tokens[at : at + self.block_size].astype(np.int64))
        return {"input_ids": ids, "labels": ids}


class TokenMeter(TrainerCallback):
    def __init__(self, tokens_per_step):
        self.tokens_per_step = tokens_per_step

    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs and "loss" in logs:
            seen = state.global_step * self.tokens_per_step / 1e6
            print(f"{seen:8.1f} M tokens  loss {logs['loss']:.3f}  grad {logs['grad_norm']:.2f}", flush=True)


class PretrainTrainer(Trainer):
    """No weight decay for norms, biases and embeddings."""

    def get_decay_parameter_names(self, model):
        return [n for n, p in model.named_parameters() if p.ndim >= 2 and "embed" not in n]


def write_corpus(path, count, vocab_size, seed=0):
    rng = np.random.default_rng(seed)
    rng.zipf(1.2, count).clip(max=vocab_size - 1).astype(np.uint16).tofile(path)


def load_config(path):
    cfg = yaml.safe_load(Path(path).read_text())
    small = cfg.pop("small")
    if os.environ.get("SMALL") == "1":
        for section, values in small.items():
            cfg[section].update(values)
    return cfg


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default=Path(__file__).with_name("config.yaml"))
    cfg = load_config(parser.parse_args().config)
    out = tempfile.mkdtemp(prefix="opt_pretrain_")

    corpus = os.path.join(out, "train.bin")
    write_corpus(corpus, cfg["data"]["num_tokens"], cfg["model"]["vocab_size"])
    args = TrainingArguments(output_dir=out, use_cpu=not torch.cuda.is_available(), **cfg["training"])
    model = OPTForCausalLM(OPTConfig(use_cache=False, **cfg["model"]))
    print(f"{model.num_parameters() / 1e6:.1f} M parameters")

    trainer = PretrainTrainer(
        model=model,
        args=args,
        train_dataset=PackedTokens(corpus, cfg["data"]["block_size"]),
        callbacks=[TokenMeter(args.train_batch_size * cfg["data"]["block_size"])],
    )
    trainer.train()


if __name__ == "__main__":
    main()
