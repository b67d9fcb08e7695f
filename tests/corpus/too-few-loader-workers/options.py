#> flags cpu_count=32; workers batch_ms=66
import argparse

from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--num-workers", type=int, default=2)  #> found
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()

train_set = make_dataset()
batches = DataLoader(train_set, 256, True, num_workers=args.num_workers, pin_memory=True)
#^ site loader num_workers=2 persistent_workers=false pin_memory=true batches_per_epoch=1200 epochs_started=1
for _ in range(args.epochs):
    for x, y in batches:  #> cost cpu_ms=14 idle_ms=13 loader_ms=14; use loader
        update(x, y)  #> cost device_ms=20
