"""TrainingArguments from the command line, and a Trainer of the user's own."""

import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel, HfArgumentParser, Trainer, TrainingArguments

DEFAULTS = [
    "--use_cpu",
    "--output_dir",
    "out",
    "--max_steps",
    "12",
    "--report_to",
    "none",
    "--save_strategy",
    "no",
]


class Own(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **more):
        out = model(**inputs)
        return (out.loss, out) if return_outputs else out.loss


def main():
    parser = HfArgumentParser(TrainingArguments)
    (arguments,) = parser.parse_args_into_dataclasses(sys.argv[1:] or DEFAULTS)
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=100, n_embd=16, n_layer=2, n_head=2, n_positions=32))
    rows = [{"input_ids": torch.arange(i, i + 16), "labels": torch.arange(i, i + 16)} for i in range(80)]
    Own(model=model, args=arguments, train_dataset=rows).train()


if __name__ == "__main__":
    main()
