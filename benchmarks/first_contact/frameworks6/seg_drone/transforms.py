import random

import torch


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, image, target):
        for t in self.transforms:
            image, target = t(image, target)
        return image, target


class RandomCrop:
    def __init__(self, size):
        self.size = size

    def __call__(self, image, target):
        y = random.randint(0, image.shape[-2] - self.size)
        x = random.randint(0, image.shape[-1] - self.size)
        window = (..., slice(y, y + self.size), slice(x, x + self.size))
        return image[window], target[window]


class RandomHorizontalFlip:
    def __init__(self, flip_prob):
        self.flip_prob = flip_prob

    def __call__(self, image, target):
        if random.random() < self.flip_prob:
            image, target = image.flip(-1), target.flip(-1)
        return image, target


class Normalize:
    def __init__(self, mean, std):
        self.mean = torch.tensor(mean).view(3, 1, 1)
        self.std = torch.tensor(std).view(3, 1, 1)

    def __call__(self, image, target):
        return (image.float() / 255 - self.mean) / self.std, target.long()
