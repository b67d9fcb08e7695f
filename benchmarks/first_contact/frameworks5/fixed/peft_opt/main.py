"""LoRA fine-tuning of an OPT-1.3B sized model on packed instructions (PEFT + Trainer)."""
import os
import tempfile
from functools import partial

import torch
from peft import LoraConfig, TaskType, get_peft_model
from torch.utils.data import Dataset
from transformers import AutoModelForCausalLM, OPTConfig, Trainer, TrainingArguments, default_data_collator

SMALL = os.environ.get("SMALL") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

model_kwargs = dict(
    vocab_size=512 if SMALL else 50272,
    hidden_size=64 if SMALL else 2048,
    word_embed_proj_dim=64 if SMALL else 2048,
    num_hidden_layers=2 if SMALL else 24,
    num_attention_heads=4 if SMALL else 32,
    ffn_dim=128 if SMALL else 8192,
    max_position_embeddings=2048,
    use_cache=False,
)

lora_config = LoraConfig(
    task_type=TaskType.CAUSAL_LM,
    r=16,
    lora_alpha=32,
    lora_dropout=0.05,
    target_modules=["q_proj", "v_proj"],
    bias="none",
)


class PackedInstructions(Dataset):
    """Prompt and answer pairs, joined by the end token and cut to full context windows."""

    def __init__(self, windows, length, vocab_size, eos=2):
        g = torch.Generator().manual_seed(0)
        pieces, total = [], 0
        while total < windows * length:
            n = int(torch.randint(60, 400, (1,), generator=g))
            pieces.append(torch.randint(4, vocab_size, (n,), generator=g))
            pieces.append(torch.tensor([eos]))
            total += n + 1
        self.windows = torch.cat(pieces)[: windows * length].view(windows, length)

    def __len__(self):
        return len(self.windows)

    def __getitem__(self, i):
        ids = self.windows[i]
        return dict(input_ids=ids, labels=ids)


def load_model():
    config = OPTConfig(**model_kwargs)
    with device:
        model = AutoModelForCausalLM.from_config(
            config,
            dtype=torch.bfloat16,
            attn_implementation="sdpa",
        )
    model = get_peft_model(model, lora_config, autocast_adapter_dtype=False)
    model.print_trainable_parameters()
    return model


def main():
    torch.manual_seed(0)
    model = load_model()
    train_data = PackedInstructions(
        windows=16 if SMALL else 2400, length=64 if SMALL else 1024, vocab_size=model_kwargs["vocab_size"]
    )
    make_args = partial(
        TrainingArguments,
        output_dir=tempfile.mkdtemp(prefix="lora_opt_"),
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
    )
    args = make_args(
        per_device_train_batch_size=2 if SMALL else 4,
        num_train_epochs=1,
        learning_rate=2e-4,
        warmup_steps=50,
        lr_scheduler_type="cosine",
        optim="adamw_torch_fused",
        max_grad_norm=0.3,
        dataloader_num_workers=2,
        dataloader_persistent_workers=True,
        dataloader_pin_memory=torch.cuda.is_available(),
        accelerator_config={"non_blocking": True},
        logging_steps=100,
        logging_nan_inf_filter=False,
    )
    trainer = Trainer(model=model, args=args, train_dataset=train_data, data_collator=default_data_collator)
    trainer.train()


if __name__ == "__main__":
    main()
