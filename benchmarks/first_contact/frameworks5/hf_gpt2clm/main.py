"""Pretrain GPT-2 small from scratch on a packed corpus (Trainer)."""
import argparse
import os
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, default_data_collator

from data import PackedBlocks, synthetic_corpus

SMALL = os.environ.get("SMALL") == "1"


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vocab_size", type=int, default=512 if SMALL else 50304)
    parser.add_argument("--block_size", type=int, default=64 if SMALL else 1024)
    parser.add_argument("--n_layer", type=int, default=2 if SMALL else 12)
    parser.add_argument("--n_head", type=int, default=2 if SMALL else 12)
    parser.add_argument("--n_embd", type=int, default=32 if SMALL else 768)
    parser.add_argument("--batch_size", type=int, default=4 if SMALL else 16)
    parser.add_argument("--corpus_tokens", type=int, default=20_000 if SMALL else 20_000_000)
    parser.add_argument("--max_steps", type=int, default=12 if SMALL else 1200)
    parser.add_argument("--lr", type=float, default=6e-4)
    return parser.parse_args()


def build_model(args):
    config = GPT2Config(  # flaw: hand-written-activation
        vocab_size=args.vocab_size,
        n_positions=args.block_size,
        n_embd=args.n_embd,
        n_layer=args.n_layer,
        n_head=args.n_head,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
    )
    model = GPT2LMHeadModel(config)
    n_params = sum(p.numel() for p in model.parameters())
    print(f"GPT-2 with {n_params / 1e6:.1f}M parameters")
    return model


def main():
    args = parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    tokens = synthetic_corpus(args.corpus_tokens, args.vocab_size)
    train_dataset = PackedBlocks(tokens, args.block_size)
    model = build_model(args)

    training_args = TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="gpt2_scratch_"),
        max_steps=args.max_steps,
        per_device_train_batch_size=args.batch_size,
        gradient_accumulation_steps=1,
        gradient_checkpointing=True,  # flaw: needless-checkpointing
        learning_rate=args.lr,
        lr_scheduler_type="cosine",
        warmup_steps=200,
        weight_decay=0.1,
        adam_beta2=0.95,
        max_grad_norm=1.0,
        bf16=torch.cuda.is_available(),
        optim="adamw_torch_fused",
        dataloader_num_workers=2 if SMALL else 4,
        dataloader_persistent_workers=True,
        dataloader_pin_memory=torch.cuda.is_available(),
        accelerator_config={"non_blocking": True},
        dataloader_drop_last=True,
        logging_steps=200,
        logging_nan_inf_filter=False,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        seed=1337,
    )
    trainer = Trainer(
        model=model,
        args=training_args,
        train_dataset=train_dataset,
        data_collator=default_data_collator,
    )
    trainer.train()


if __name__ == "__main__":
    main()
