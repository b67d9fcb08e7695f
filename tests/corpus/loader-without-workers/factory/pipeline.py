import torch.utils.data as tud


def build_loaders(root):
    common = dict(batch_size=64, collate_fn=collate)
    train = tud.DataLoader(Images(root, "train"), shuffle=True, **common)
    #^ found; site loader as=train num_workers=0 batches_per_epoch=900
    valid = tud.DataLoader(Images(root, "valid"), **common)  #> site loader as=valid num_workers=0
    return train, valid


class Images(tud.Dataset):
    def __init__(self, root, split):
        self.root, self.split = root, split


def collate(samples):
    return tud.default_collate(samples)
