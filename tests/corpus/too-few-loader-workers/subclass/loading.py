from torch.utils.data import DataLoader

WORKERS = 1  #> found


class FastLoader(DataLoader):
    def __init__(self, data, **more):
        super().__init__(data, batch_size=16, num_workers=WORKERS, **more)
        #^ site loader num_workers=1 persistent_workers=false batches_per_epoch=4000 epochs_started=1
