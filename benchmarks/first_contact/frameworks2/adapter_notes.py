"""LoRA on a small decoder with accelerate and gradient accumulation, after peft's examples."""
import os

import torch
from accelerate import Accelerator
from peft import LoraConfig, TaskType, get_peft_model
from torch.utils.data import DataLoader
from transformers import LlamaConfig, LlamaForCausalLM, get_linear_schedule_with_warmup

small = os.environ.get("SMALL") == "1"
batch_size = 2 if small else 8
gradient_accumulation_steps = 2
length = 48 if small else 512
steps = 60 if small else 160
lr = 1e-4


def main():
    accelerator = Accelerator(gradient_accumulation_steps=gradient_accumulation_steps)  # expert-gpu: mixed_precision="bf16"
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=500 if small else 32000,
            hidden_size=64 if small else 1024,
            intermediate_size=160 if small else 2816,
            num_hidden_layers=2 if small else 12,
            num_attention_heads=4 if small else 16,
            num_key_value_heads=4 if small else 16,
            use_cache=False,
        )
    )
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})  # expert-gpu: gradient_checkpointing
    model.enable_input_require_grads()
    peft_config = LoraConfig(task_type=TaskType.CAUSAL_LM, r=8, lora_alpha=32, lora_dropout=0.1, target_modules=["q_proj", "v_proj"])
    model = get_peft_model(model, peft_config)
    model.print_trainable_parameters()

    rows = torch.randint(3, model.config.vocab_size, (batch_size * steps, length)).tolist()

    def collate(some):
        ids = torch.tensor(some)
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids.clone()}

    train_dataloader = DataLoader(rows, shuffle=True, collate_fn=collate, batch_size=batch_size, pin_memory=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    lr_scheduler = get_linear_schedule_with_warmup(optimizer, 0, steps)
    model, optimizer, train_dataloader, lr_scheduler = accelerator.prepare(model, optimizer, train_dataloader, lr_scheduler)

    model.train()
    total_loss = 0
    for step, batch in enumerate(train_dataloader):
        with accelerator.accumulate(model):
            outputs = model(**batch)
            loss = outputs.loss
            total_loss += loss.detach().float()
            accelerator.backward(loss)
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
    accelerator.print("mean loss", total_loss.item() / len(train_dataloader))


if __name__ == "__main__":
    main()
