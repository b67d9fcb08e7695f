#> steps step_ms=60
import torch
from torch.utils.data import DataLoader


class Reviews(torch.utils.data.Dataset):
    def __init__(self, texts, labels, tokenizer):
        self.labels = labels
        self.rows = tokenizer(texts, padding="max_length", max_length=256, truncation=True)["input_ids"]
        #^ found

    def __getitem__(self, at):
        return torch.tensor(self.rows[at]), self.labels[at]


loader = DataLoader(Reviews(texts, labels, tokenizer), batch_size=16, num_workers=4)
for ids, labels in loader:
    logits = model(ids.cuda(non_blocking=True))
    #^ cost device_ms=55; padding rows=16 columns=256 padded=3000 shared=120
    loss = criterion(logits, labels)
    loss.backward()
