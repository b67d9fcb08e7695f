from torch.utils.data import DataLoader, Dataset


class Toy(Dataset):
    def __getitem__(self, index):
        return decode(index)  #> found slow-sample-line; cost cpu_ms=15 idle_ms=15 loader_ms=15


train = DataLoader(Toy(), 16)  #> found; site loader as=train num_workers=0 dataset_file=/project/one_dataset.py
val = DataLoader(Toy(), 64)
#^ site loader as=val num_workers=0 dataset_file=/project/one_dataset.py
for step, batch in enumerate(train):  #> use train; cost cpu_ms=0.5 idle_ms=0.5 loader_ms=0.5
    loss = learn(batch)  #> cost device_ms=5
    if step % 50 == 0:
        for batch in val:  #> use val
            check(batch)
