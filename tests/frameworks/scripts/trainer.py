"""transformers' Trainer, its arguments in a dict, and a model that computes its attention step by step."""

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

SETTINGS = {
    "training": {
        "output_dir": "out",
        "max_steps": 12,
        "per_device_train_batch_size": 4,
        "optim": "adamw_torch",
        "report_to": [],
        "save_strategy": "no",
        "logging_steps": 1,
        "disable_tqdm": True,
        "use_cpu": True,
    },
}


class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, index):
        ids = torch.arange(index, index + 16) % 100
        return {"input_ids": ids, "labels": torch.tensor(index % 2)}


def main():
    config = BertConfig(
        num_labels=2,
        vocab_size=100,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
    )
    model = BertForSequenceClassification._from_config(config, attn_implementation="eager")
    model.gradient_checkpointing_enable()
    arguments = TrainingArguments(**SETTINGS["training"])
    trainer = Trainer(model=model, args=arguments, train_dataset=Texts())
    trainer.train()


if __name__ == "__main__":
    main()
