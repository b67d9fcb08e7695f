"""Trains a PatchTST forecaster for photovoltaic plants.

The options are what `conf/pv.yaml` holds in the full project.
"""
import json
import os
import sys
import tempfile

import torch
from transformers import Trainer, TrainingArguments, set_seed

from pv_forecast_lib import Windows, build_model, synthetic_plants

SMALL = os.environ.get("SMALL") == "1"

CONF = {
    "data": {"plants": 8 if SMALL else 32, "days": 60 if SMALL else 365, "context": 384, "horizon": 96},
    "model": {
        "d_model": 64 if SMALL else 512,
        "num_attention_heads": 4 if SMALL else 8,
        "num_hidden_layers": 3 if SMALL else 6,
        "ffn_dim": 128 if SMALL else 2048,
    },
    "trainer": {
        "max_steps": 60 if SMALL else 150,
        "per_device_train_batch_size": 2 if SMALL else 4, "gradient_accumulation_steps": 4 if SMALL else 8,  # expert: gradient_accumulation_steps=1 with per_device_train_batch_size=8 (32 on the GPU)
        "learning_rate": 1e-3,
        "lr_scheduler_type": "cosine",
        "warmup_steps": 10,
        "max_grad_norm": 1.0,
        "optim": "adamw_torch_fused",
        "bf16": torch.cuda.is_available(),
        "dataloader_num_workers": 0,  # expert: dataloader_num_workers=8
        "dataloader_drop_last": True,
        "logging_steps": 20,
        "logging_nan_inf_filter": False,
        "save_strategy": "no",
        "disable_tqdm": True,
        "report_to": "none",
        "label_names": ["future_values"],
        "seed": 3,
    },
}


def merged(conf, overrides):
    """`trainer.max_steps=20` on the command line."""
    for override in overrides:
        path, value = override.split("=", 1)
        section, key = path.split(".")
        if key not in conf[section]:
            raise KeyError(path)
        conf[section][key] = json.loads(value)
    return conf


def make_trainer(conf, workdir):
    data = conf["data"]
    power = synthetic_plants(data["plants"], data["days"], conf["trainer"]["seed"])
    windows = Windows(power, data["context"], data["horizon"])
    print(f"{len(windows)} windows of {data['plants']} plants", flush=True)
    model = build_model(data["plants"], data["context"], data["horizon"], **conf["model"])
    options = TrainingArguments(output_dir=workdir, **conf["trainer"])
    return Trainer(model=model, args=options, train_dataset=windows)


def main():
    conf = merged(CONF, sys.argv[1:])
    set_seed(conf["trainer"]["seed"])
    with tempfile.TemporaryDirectory(prefix="pv-") as workdir:
        trainer = make_trainer(conf, workdir)
        result = trainer.train()
    print(f"error {result.training_loss:.4f}")
    print(f"{1000 * result.metrics['train_runtime'] / result.global_step:.1f} ms an update")


if __name__ == "__main__":
    main()
