import random
from dataclasses import dataclass

import torch
from torch.utils.data import Dataset

AMINO_ACIDS = "LAGVSERTIDPKQNFYMHWC"
CLS, PAD, EOS, FIRST = 0, 1, 2, 4
LABELS = ["H", "E", "C"]


class SecondaryStructureDataset(Dataset):
    """Made-up chains with the length distribution of a CATH-like split."""

    def __init__(self, size, max_residues, seed=0):
        rng = random.Random(seed)
        self.chains = []
        for _ in range(size):
            length = int(min(max(rng.lognormvariate(5.55, 0.55), 40), max_residues))
            residues = "".join(rng.choices(AMINO_ACIDS, k=length))
            states, state = [], 2
            for _ in range(length):
                if rng.random() < 0.15:
                    state = rng.randrange(3)
                states.append(state)
            self.chains.append((residues, states))
        self.index = {aa: FIRST + i for i, aa in enumerate(AMINO_ACIDS)}

    def __len__(self):
        return len(self.chains)

    def __getitem__(self, item):
        residues, states = self.chains[item]
        ids = [CLS] + [self.index[aa] for aa in residues] + [EOS]
        return {"input_ids": ids, "labels": [-100] + states + [-100]}


@dataclass
class DataCollatorForChains:
    padding: str = "longest"
    max_length: int = 1024
    label_pad_token_id: int = -100

    def __call__(self, features):
        longest = max(len(f["input_ids"]) for f in features)
        width = self.max_length if self.padding == "max_length" else -(-longest // 8) * 8
        batch = {"input_ids": [], "attention_mask": [], "labels": []}
        for f in features:
            n, missing = len(f["input_ids"]), width - len(f["input_ids"])
            batch["input_ids"].append(f["input_ids"] + [PAD] * missing)
            batch["attention_mask"].append([1] * n + [0] * missing)
            batch["labels"].append(f["labels"] + [self.label_pad_token_id] * missing)
        return {k: torch.tensor(v) for k, v in batch.items()}
