#!/usr/bin/env python
# coding: utf-8

# # Fault classes from aircraft maintenance logs
# Exported from `maintenance_intents.ipynb`.

# In[1]:

import os
import tempfile

import numpy as np
import torch
from torch import nn
from transformers import DistilBertConfig, DistilBertForSequenceClassification
from transformers import Trainer, TrainerCallback, TrainingArguments

small = os.environ.get("SMALL") == "1"
torch.manual_seed(0)
rng = np.random.default_rng(0)

# ## Data
# Each log entry is 510 word pieces long, the faults are rare.

# In[2]:

VOCAB = 4000 if small else 30000
LENGTH = 512
LABELS = ["airframe", "avionics", "engine", "gear", "hydraulics", "cabin", "fuel", "other"]


class LogEntries(torch.utils.data.Dataset):
    def __init__(self, count):
        share = np.array([0.02, 0.05, 0.1, 0.03, 0.05, 0.25, 0.1, 0.4])
        self.labels = torch.from_numpy(rng.choice(len(LABELS), size=count, p=share))
        words = torch.from_numpy(rng.integers(10, VOCAB, size=(count, LENGTH)))
        topic = 10 + self.labels[:, None] * 40 + torch.from_numpy(rng.integers(0, 40, size=(count, LENGTH)))
        self.words = torch.where(torch.from_numpy(rng.random((count, LENGTH)) < 0.1), topic, words)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return {"input_ids": self.words[index], "labels": self.labels[index]}


train_data = LogEntries(300 if small else 6000)
counts = torch.bincount(train_data.labels, minlength=len(LABELS)).float()
print("entries of each class:", dict(zip(LABELS, counts.long().tolist())), flush=True)

# ## Model

# In[3]:

config = DistilBertConfig(
    vocab_size=VOCAB,
    max_position_embeddings=LENGTH,
    dim=96 if small else 768,
    hidden_dim=384 if small else 3072,
    n_layers=3 if small else 6,
    n_heads=6 if small else 12,
    attention_dropout=0.0,
    num_labels=len(LABELS),
    attn_implementation="eager",  # expert: attn_implementation="sdpa"
)
model = DistilBertForSequenceClassification(config)

# ## A trainer for rare classes

# In[4]:


class WeightedTrainer(Trainer):
    def __init__(self, *args, class_weights=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.criterion = nn.CrossEntropyLoss(weight=class_weights.to(self.args.device), label_smoothing=0.05)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = self.criterion(outputs.logits.float(), labels)
        return (loss, outputs) if return_outputs else loss


class Printer(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in logs:
            print(f"step {state.global_step}: loss {logs['loss']}", flush=True)


# In[5]:

workdir = tempfile.mkdtemp(prefix="intents-")

args = TrainingArguments(  # expert-gpu: bf16=True
    output_dir=workdir,
    per_device_train_batch_size=2 if small else 32,
    max_steps=60 if small else 120,
    learning_rate=3e-4,
    warmup_steps=10,
    weight_decay=0.01,
    label_names=["labels"],
    logging_steps=20,
    logging_nan_inf_filter=False,
    torch_empty_cache_steps=1,  # expert-gpu: torch_empty_cache_steps=None
    dataloader_num_workers=1 if small else 4,
    dataloader_persistent_workers=True,
    save_strategy="no",
    disable_tqdm=True,
    report_to="none",
)

trainer = WeightedTrainer(
    model=model,
    args=args,
    train_dataset=train_data,
    callbacks=[Printer()],
    class_weights=(counts.sum() / (counts.clamp(min=1) * len(LABELS))).sqrt(),
)

# In[6]:

result = trainer.train()
print(f"{1000 * result.metrics['train_runtime'] / result.global_step:.1f} ms a step, loss {result.training_loss:.3f}")
