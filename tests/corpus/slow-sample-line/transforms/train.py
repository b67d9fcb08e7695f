#> flags cpu_count=16
from torch.utils.data import DataLoader

from augment import Pictures

pictures = DataLoader(Pictures("/data"), batch_size=64)
#^ found loader-without-workers; site loader num_workers=0 batches_per_epoch=100
for picture, target in pictures:  #> cost cpu_ms=3 idle_ms=3 loader_ms=3; use loader
    fit(picture, target)  #> cost device_ms=35
