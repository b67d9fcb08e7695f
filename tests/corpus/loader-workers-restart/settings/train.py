import yaml_like
from torch.utils.data import DataLoader

options = yaml_like.LOADER
source = DataLoader(yaml_like.data(), **options)
#^ site loader num_workers=4 persistent_workers=false batches_per_epoch=10 epochs_started=7
while True:
    for item in source:  #> cost cpu_ms=9 idle_ms=8 loader_ms=9; use loader
        advance(item)  #> cost device_ms=11
