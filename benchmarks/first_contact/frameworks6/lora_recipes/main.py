import argparse
import os
import time

import numpy as np
import torch
from peft import LoraConfig, TaskType, get_peft_model
from torch.utils.data import DataLoader
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, get_linear_schedule_with_warmup

from collate import LengthBuckets, SupervisedCollator

SMALL = os.environ.get("SMALL") == "1"


def parse_args():
    p = argparse.ArgumentParser(description="LoRA fine-tuning of a Pythia-410m sized model on cooking recipes")
    p.add_argument("--batch_size", type=int, default=4 if SMALL else 24)
    p.add_argument("--cutoff_len", type=int, default=96 if SMALL else 1024)
    p.add_argument("--padding", choices=["longest", "max_length"], default="max_length")  # flaw: padded-batches
    p.add_argument("--num_epochs", type=int, default=3)
    p.add_argument("--learning_rate", type=float, default=2e-4)
    p.add_argument("--lora_r", type=int, default=16)
    p.add_argument("--lora_alpha", type=int, default=32)
    p.add_argument("--lora_target_modules", nargs="+", default=["query_key_value"])
    p.add_argument("--gradient_checkpointing", action=argparse.BooleanOptionalAction, default=True)  # flaw: needless-checkpointing
    p.add_argument("--log_every", type=int, default=50)
    return p.parse_args()


def recipes(count, cutoff, vocab, seed=0):
    rng = np.random.default_rng(seed)
    lengths = np.exp(rng.normal(np.log(cutoff * 0.33), 0.45, count)).clip(16, cutoff).astype(int)
    return [torch.from_numpy(rng.integers(2, vocab, n)) for n in lengths]


def load_base_model():
    config = GPTNeoXConfig(
        vocab_size=512 if SMALL else 50304,
        hidden_size=64 if SMALL else 1024,
        num_hidden_layers=2 if SMALL else 24,
        num_attention_heads=4 if SMALL else 16,
        intermediate_size=128 if SMALL else 4096,
        max_position_embeddings=2048,
        use_parallel_residual=True,
        use_cache=False,
        pad_token_id=1,
    )
    return GPTNeoXForCausalLM(config).to(torch.bfloat16)


def main():
    args = parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    model = load_base_model()
    if args.gradient_checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})  # flaw: needless-checkpointing
        model.enable_input_require_grads()
    lora = LoraConfig(
        r=args.lora_r,
        lora_alpha=args.lora_alpha,
        lora_dropout=0.0,
        target_modules=args.lora_target_modules,
        task_type=TaskType.CAUSAL_LM,
    )
    model = get_peft_model(model, lora, autocast_adapter_dtype=False).to(device)
    model.print_trainable_parameters()

    data = recipes(1200 if SMALL else 24000, args.cutoff_len, 512 if SMALL else 50000)
    loader = DataLoader(
        data,
        batch_sampler=LengthBuckets([len(r) for r in data], args.batch_size),
        collate_fn=SupervisedCollator(1, args.cutoff_len, args.padding),
        num_workers=1 if SMALL else 4,
        persistent_workers=True,
        pin_memory=device.type == "cuda",
    )
    optimizer = torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad], lr=args.learning_rate, weight_decay=0.0, fused=True
    )
    total = args.num_epochs * len(loader)
    scheduler = get_linear_schedule_with_warmup(optimizer, total // 20, total)

    step, begin = 0, time.time()
    for epoch in range(args.num_epochs):
        model.train()
        for batch in loader:
            batch = {k: v.to(device, non_blocking=True) for k, v in batch.items()}
            loss = model(**batch).loss
            loss.backward()
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            step += 1
            if step % args.log_every == 0:
                print(f"epoch {epoch} step {step}/{total} loss {loss.item():.3f} {time.time() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
