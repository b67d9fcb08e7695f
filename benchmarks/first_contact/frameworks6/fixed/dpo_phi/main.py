import os
from dataclasses import dataclass

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import AutoModelForCausalLM, HfArgumentParser, PhiConfig

from dpo import DPOConfig, DPOTrainer

SMALL = os.environ.get("SMALL") == "1"


@dataclass
class ScriptArguments:
    pairs: int = 400 if SMALL else 9600
    max_prompt_length: int = 16 if SMALL else 128
    max_length: int = 48 if SMALL else 512
    hidden_size: int = 64 if SMALL else 1024
    num_layers: int = 2 if SMALL else 16
    num_heads: int = 4 if SMALL else 16
    vocab_size: int = 512 if SMALL else 32000
    attn_implementation: str = "sdpa"


class Preferences(Dataset):
    """A prompt and two answers, all cut to `max_length`."""

    def __init__(self, args, seed=0):
        self.args = args
        self.seeds = np.random.default_rng(seed).integers(0, 1 << 31, args.pairs)

    def __len__(self):
        return len(self.seeds)

    def __getitem__(self, i):
        rng = np.random.default_rng(self.seeds[i])
        prompt = rng.integers(2, self.args.vocab_size, rng.integers(4, self.args.max_prompt_length))
        rest = self.args.max_length - len(prompt)
        answers = rng.integers(2, self.args.vocab_size, (2, rest))
        return {"prompt": prompt, "chosen": answers[0], "rejected": answers[1]}


def collate(features):
    rows, masks = [], []
    for name in ("chosen", "rejected"):
        for f in features:
            rows.append(np.concatenate([f["prompt"], f[name]]))
            ahead = np.arange(1, len(rows[-1]) + 1)  # each position predicts the next token
            masks.append((ahead >= len(f["prompt"])) & (ahead < len(rows[-1])))
    return {"input_ids": torch.from_numpy(np.stack(rows)), "target_mask": torch.from_numpy(np.stack(masks))}


def main(script_args, training_args):
    torch.manual_seed(0)
    config = PhiConfig(
        vocab_size=script_args.vocab_size,
        hidden_size=script_args.hidden_size,
        intermediate_size=4 * script_args.hidden_size,
        num_hidden_layers=script_args.num_layers,
        num_attention_heads=script_args.num_heads,
        hidden_act="gelu_pytorch_tanh",
        use_cache=False,
    )
    model = AutoModelForCausalLM.from_config(config, attn_implementation=script_args.attn_implementation)
    trainer = DPOTrainer(model, training_args, train_dataset=Preferences(script_args), data_collator=collate)
    trainer.train()


if __name__ == "__main__":
    parser = HfArgumentParser((ScriptArguments, DPOConfig))
    parser.set_defaults(per_device_train_batch_size=2 if SMALL else 8, dataloader_num_workers=1 if SMALL else 4)
    main(*parser.parse_args_into_dataclasses())
