"""LoRA fine-tuning of a decoder on instruction memos (peft, plain loop)."""
from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from functools import partial

import torch
from peft import LoraConfig, TaskType, get_peft_model
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset
from transformers import AutoModelForCausalLM, MistralConfig, get_cosine_schedule_with_warmup

_SMALL = os.environ.get("SMALL") == "1"


@dataclass
class FinetuneConfig:
    vocab_size: int = 256 if _SMALL else 32000
    hidden_size: int = 64 if _SMALL else 1536
    intermediate_size: int = 128 if _SMALL else 4096
    num_hidden_layers: int = 2 if _SMALL else 10
    num_attention_heads: int = 4 if _SMALL else 12
    num_key_value_heads: int = 2 if _SMALL else 4
    rank: int = 16
    alpha: int = 32
    batch_size: int = 2 if _SMALL else 8
    max_length: int = 32 if _SMALL else 384
    steps: int = 30 if _SMALL else 70
    lr: float = 2e-4
    gradient_checkpointing: bool = True  # expert: gradient_checkpointing=False


class Memos(Dataset):
    def __init__(self, n: int, vocab: int, max_length: int):
        self.n, self.vocab, self.max_length = n, vocab, max_length

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        g = torch.Generator().manual_seed(i)
        prompt = torch.randint(3, self.vocab, (self.max_length // 4,), generator=g)
        answer = prompt.repeat(4)[torch.randint(len(prompt), (self.max_length - len(prompt),), generator=g)]
        ids = torch.cat([prompt, answer])
        labels = ids.clone()
        labels[: len(prompt)] = -100
        return {"input_ids": ids, "labels": labels}


def collate(rows, pad_id: int):
    return (
        pad_sequence([r["input_ids"] for r in rows], batch_first=True, padding_value=pad_id),
        pad_sequence([r["labels"] for r in rows], batch_first=True, padding_value=-100),
    )


def build(cfg: FinetuneConfig, device: torch.device):
    arch = {k: v for k, v in asdict(cfg).items() if k.startswith(("vocab", "hidden", "inter", "num_"))}
    config = MistralConfig(**arch, sliding_window=None, max_position_embeddings=1024, use_cache=False, pad_token_id=0)
    base = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")  # expert: dtype=torch.bfloat16
    if cfg.gradient_checkpointing:
        base.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        base.enable_input_require_grads()
    lora = LoraConfig(
        task_type=TaskType.CAUSAL_LM,
        r=cfg.rank,
        lora_alpha=cfg.alpha,
        lora_dropout=0.0,
        bias="none",
        target_modules=["q_proj", "k_proj", "v_proj", "o_proj"],
    )
    model = get_peft_model(base, lora).to(device)
    model.print_trainable_parameters()
    return model


def finetune(cfg: FinetuneConfig) -> None:
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = build(cfg, device)
    loader = DataLoader(
        Memos(cfg.batch_size * cfg.steps, cfg.vocab_size, cfg.max_length),
        batch_size=cfg.batch_size,
        shuffle=True,
        drop_last=True,
        collate_fn=partial(collate, pad_id=0),
        num_workers=0 if _SMALL else 4,
        pin_memory=device.type == "cuda",
    )
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=cfg.lr, fused=True)
    scheduler = get_cosine_schedule_with_warmup(optimizer, cfg.steps // 10, cfg.steps)

    model.train()
    history = []
    for step, (ids, labels) in enumerate(loader, 1):
        ids = ids.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trainable, 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        history.append(loss.detach())
        if step % 20 == 0:
            print(f"step {step}: {torch.stack(history[-20:]).mean().item():.4f}")
    print("last", torch.stack(history[-5:]).mean().item())


if __name__ == "__main__":
    finetune(FinetuneConfig())
