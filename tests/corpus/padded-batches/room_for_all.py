#> steps step_ms=60
import torch
from torch.utils.data import DataLoader, Dataset


class Posts(Dataset):
    def __init__(self, posts, config):
        self.posts, self.config = posts, config

    def __getitem__(self, at):
        words = self.posts[at]
        row = words + [0] * (self.config.room - len(words))  #> found
        return torch.tensor(row)


def collate(rows):
    return torch.stack(rows)


loader = DataLoader(Posts(posts, config), 32, collate_fn=collate, num_workers=4)
#^ site loader dataset_file=/project/room_for_all.py dataset_line=10 collate_file=/project/room_for_all.py collate_line=16
for batch in loader:  #> use loader; cost cpu_ms=1 loader_ms=0.1
    loss = model(batch)  #> cost device_ms=50; padding rows=32 columns=256 padded=6000 shared=90
    loss.backward()
