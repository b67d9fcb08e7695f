"""Adapters of peft in a loop of the user's, beside a model in float32 whose activations are recomputed."""

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, LlamaConfig


class Options:
    save_memory = True


def main(options):
    config = LlamaConfig(
        vocab_size=256, hidden_size=128, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4
    )
    model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
    if options.save_memory:
        model.gradient_checkpointing_enable()
        model.enable_input_require_grads()
    model = get_peft_model(model, LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))
    optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad])
    model.train()
    for _ in range(16):
        ids = torch.randint(256, (4, 64))
        loss = model(input_ids=ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main(Options())
