import math

import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from timm.models.vision_transformer import VisionTransformer


class SpectrogramTransformer(pl.LightningModule):
    """A ViT over 16x16 patches of the log-mel spectrogram, trained for multi-label tagging."""

    def __init__(self, n_mels, n_frames, n_classes, dim=768, depth=12, heads=12, lr=2e-4, warmup=200, total=1000):
        super().__init__()
        self.save_hyperparameters()
        self.net = VisionTransformer(
            img_size=(n_mels, n_frames),
            patch_size=16,
            in_chans=1,
            num_classes=n_classes,
            global_pool="avg",
            embed_dim=dim,
            depth=depth,
            num_heads=heads,
        )

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        loss = F.binary_cross_entropy_with_logits(logits, y)
        self.log("train/loss", loss, on_step=True, on_epoch=False)
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=0.05, fused=True)
        warmup, total = self.hparams.warmup, self.hparams.total

        def rate(step):
            if step < warmup:
                return (step + 1) / warmup
            return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, total - warmup)))

        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}
