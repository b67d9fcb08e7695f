import argparse
import os
import warnings
from pathlib import Path

import torch
import torch.nn.functional as F
import yaml
from transformers import ASTConfig, ASTForAudioClassification

from datamodule import N_MELS, ESC50DataModule, pl

warnings.filterwarnings("ignore")


class LitAST(pl.LightningModule):
    def __init__(self, frames, hidden_size=768, layers=12, heads=12, lr=5e-5):
        super().__init__()
        self.save_hyperparameters()
        self.net = ASTForAudioClassification(
            ASTConfig(
                hidden_size=hidden_size,
                num_hidden_layers=layers,
                num_attention_heads=heads,
                intermediate_size=4 * hidden_size,
                max_length=frames,
                num_mel_bins=N_MELS,
                num_labels=50,
            )
        )

    def forward(self, fbank):
        return self.net(fbank).logits

    def training_step(self, batch, batch_idx):
        fbank, target = batch
        loss = F.cross_entropy(self(fbank), target, label_smoothing=0.1)
        self.log("train/loss", loss, on_step=False, on_epoch=True, batch_size=len(target))
        return loss

    def validation_step(self, batch, batch_idx):
        fbank, target = batch
        accuracy = (self(fbank).argmax(-1) == target).float().mean()
        self.log("val/accuracy", accuracy, batch_size=len(target))

    def configure_optimizers(self):
        decay = [p for p in self.parameters() if p.ndim > 1]
        rest = [p for p in self.parameters() if p.ndim <= 1]
        groups = [{"params": decay, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, lr=self.hparams.lr, fused=True)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, self.trainer.max_epochs)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "epoch"}}


class EpochPrinter(pl.Callback):
    def on_train_epoch_end(self, trainer, module):
        if trainer.current_epoch % 20 == 0:
            print(trainer.current_epoch, {k: round(float(v), 4) for k, v in trainer.callback_metrics.items()})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, default=Path(__file__).with_name("config.yaml"))
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    cfg = yaml.safe_load(args.config.read_text())
    if os.environ.get("SMALL") == "1":
        cfg["data"].update(clips_per_fold=10, seconds=1, batch_size=4, num_workers=1)
        cfg["model"].update(hidden_size=32, layers=2, heads=4)

    pl.seed_everything(args.seed, workers=True, verbose=False)
    data = ESC50DataModule(**cfg["data"])
    model = LitAST(frames=data.frames, **cfg["model"])
    trainer = pl.Trainer(accelerator="auto", devices=1, callbacks=[EpochPrinter()], **cfg["trainer"])
    trainer.fit(model, datamodule=data)


if __name__ == "__main__":
    main()
