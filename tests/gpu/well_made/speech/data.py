"""Spectrograms kept in memory, shifted at random."""

import torch
from torch.utils.data import DataLoader, Dataset

BANDS, FRAMES = 80, 200


class Keywords(Dataset):
    def __init__(self, count, keywords):
        self.clips = torch.randn(count, BANDS, FRAMES + 20).bfloat16()
        self.labels = torch.randint(0, keywords, (count,))

    def __len__(self):
        return 1000 * len(self.clips)

    def __getitem__(self, index):
        index %= len(self.clips)
        shift = int(torch.randint(0, 20, ()))
        return self.clips[index, :, shift : shift + FRAMES], self.labels[index]


def loader(config):
    options = {"num_workers": config.workers, "pin_memory": True, "persistent_workers": config.workers > 0}
    data = Keywords(2048, config.keywords)
    return DataLoader(data, batch_size=config.batch_size, shuffle=True, drop_last=True, **options)
