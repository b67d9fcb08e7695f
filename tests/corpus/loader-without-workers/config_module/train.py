from torch.utils.data import DataLoader as DL

import config as C
from engine import fit

loader = DL(  #> site loader num_workers=0 batches_per_epoch=200
    dataset=C.dataset(),
    batch_size=C.SETTINGS["data"]["batch"],
    num_workers=C.SETTINGS["data"]["num_workers"],  # see config.py
    drop_last=True,
)
fit(loader)
