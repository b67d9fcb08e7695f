import numpy as np
import torch
from torch.utils.data import Dataset

MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1) * 255
STD = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1) * 255


class Birds(Dataset):
    """Pictures decoded once to uint8; a few photos stand for all of them."""

    def __init__(self, count, num_classes, img_size, photos=64, seed=0):
        rng = np.random.default_rng(seed)
        side = img_size * 8 // 7
        self.photos = torch.from_numpy(rng.integers(0, 256, (photos, 3, side, side), dtype=np.uint8))
        self.labels = rng.integers(0, num_classes, count)
        self.img_size = img_size

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        photo = self.photos[i % len(self.photos)]
        y, x = torch.randint(photo.shape[-1] - self.img_size + 1, (2,)).tolist()
        crop = photo[:, y : y + self.img_size, x : x + self.img_size]
        if torch.rand(()) < 0.5:
            crop = crop.flip(-1)
        return crop.float().sub_(MEAN).div_(STD), int(self.labels[i])
