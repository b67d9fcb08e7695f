import torch
from torchvision.transforms.v2 import functional as F


class SegmentationPresetTrain:
    """Random flip and crop of an image and its mask, then normalisation."""

    def __init__(self, crop_size, hflip_prob=0.5, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)):
        self.crop_size = crop_size
        self.hflip_prob = hflip_prob
        self.mean, self.std = mean, std

    def __call__(self, img, target):
        height, width = img.shape[-2:]
        top = int(torch.randint(height - self.crop_size + 1, ()))
        left = int(torch.randint(width - self.crop_size + 1, ()))
        img = F.crop(img, top, left, self.crop_size, self.crop_size)
        target = F.crop(target, top, left, self.crop_size, self.crop_size)
        if torch.rand(()) < self.hflip_prob:
            img, target = F.horizontal_flip(img), F.horizontal_flip(target)
        img = F.normalize(F.to_dtype(img, torch.float32, scale=True), self.mean, self.std)
        return img, target[0].long()
