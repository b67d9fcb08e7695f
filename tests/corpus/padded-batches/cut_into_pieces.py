#> steps step_ms=60
import torch


def pieces(diaries, size, empty=0):
    out = []
    for diary in diaries:
        for at in range(0, len(diary), size + 1):
            part = diary[at : at + size + 1]
            out.append(part + [empty] * (size + 1 - len(part)))  #> found
    return out


def together(parts):
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(part) for part in parts], batch_first=True)
    #^ cost cpu_ms=0.2


def label(name, width=30):
    return name + " " * (width - len(name))


diaries = pieces(read(), 255)
loader = torch.utils.data.DataLoader(diaries, 32, collate_fn=together, num_workers=2)
#^ site loader collate_file=/project/cut_into_pieces.py collate_line=14
print(label("loss"))
for batch in loader:  #> use loader; cost cpu_ms=1 loader_ms=0.1
    loss = model(batch)  #> cost device_ms=50; padding rows=32 columns=256 padded=6000 shared=150
    loss.backward()
