#> steps step_ms=60
import torch


def collate(rows):
    longest = max(len(row) for row in rows)
    batch = torch.zeros(len(rows), longest, dtype=torch.long)
    for at, row in enumerate(rows):
        batch[at, : len(row)] = row
    return batch


loader = torch.utils.data.DataLoader(sentences, 32, collate_fn=collate, num_workers=4)
#^ found; site loader collate_file=/project/to_longest.py collate_line=5
for batch in loader:  #> use loader; cost cpu_ms=1 loader_ms=0.1
    loss = model(batch)  #> cost device_ms=50; padding rows=32 columns=90 padded=1500 shared=0
    loss.backward()
