import time
from collections import defaultdict
from copy import deepcopy
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader


@dataclass
class DPOConfig:
    beta: float = field(default=0.1, metadata={"help": "Temperature of the DPO loss."})
    label_smoothing: float = 0.0
    learning_rate: float = 5e-7
    per_device_train_batch_size: int = 8
    num_train_epochs: int = 4
    max_grad_norm: float = 1.0
    logging_steps: int = 50
    dataloader_num_workers: int = 4


def create_reference_model(model):
    return deepcopy(model).eval()  # flaw: wasted-gradient


class DPOTrainer:
    def __init__(self, model, args, train_dataset, data_collator, ref_model=None):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.args = args
        self.model = model.to(self.device)
        self.ref_model = create_reference_model(self.model) if ref_model is None else ref_model.to(self.device)
        self.loader = DataLoader(
            train_dataset,
            batch_size=args.per_device_train_batch_size,
            shuffle=True,
            drop_last=True,
            collate_fn=data_collator,
            num_workers=args.dataloader_num_workers,
            persistent_workers=True,
            pin_memory=self.device.type == "cuda",
        )
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=args.learning_rate, fused=True)
        self.metrics = defaultdict(lambda: torch.zeros((), device=self.device))

    def concatenated_forward(self, model, batch):
        """Log probabilities of chosen and rejected completions, one row each."""
        input_ids = batch["input_ids"]
        logits = model(input_ids=input_ids).logits
        targets = input_ids.roll(-1, 1)
        losses = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").view_as(targets)
        return -(losses * batch["target_mask"]).sum(-1).view(2, -1)

    def dpo_loss(self, policy, reference):
        margins = (policy[0] - policy[1]) - (reference[0] - reference[1])
        smooth, beta = self.args.label_smoothing, self.args.beta
        losses = -F.logsigmoid(beta * margins) * (1 - smooth) - F.logsigmoid(-beta * margins) * smooth
        return losses.mean(), beta * (policy - reference).detach()

    def get_batch_loss_metrics(self, batch):
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            policy = self.concatenated_forward(self.model, batch)
            reference = self.concatenated_forward(self.ref_model, batch)  # flaw: wasted-gradient
            loss, rewards = self.dpo_loss(policy, reference)
        self.metrics["loss"] += loss.detach()
        self.metrics["rewards/margins"] += (rewards[0] - rewards[1]).mean()
        self.metrics["rewards/accuracies"] += (rewards[0] > rewards[1]).float().mean()
        return loss

    def train(self):
        step, start = 0, time.time()
        for epoch in range(self.args.num_train_epochs):
            self.model.train()
            for batch in self.loader:
                batch = {k: v.to(self.device, non_blocking=True) for k, v in batch.items()}
                loss = self.get_batch_loss_metrics(batch)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.args.max_grad_norm)
                self.optimizer.step()
                self.optimizer.zero_grad()
                step += 1
                if step % self.args.logging_steps == 0:
                    logs = {k: round(v.item() / self.args.logging_steps, 4) for k, v in self.metrics.items()}
                    print(epoch, step, logs, f"{time.time() - start:.0f} s", flush=True)
                    self.metrics.clear()
