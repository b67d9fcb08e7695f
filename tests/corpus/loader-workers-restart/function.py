from torch.utils.data import DataLoader


def loader_for(fold, batch):
    return DataLoader(fold, batch, shuffle=True, num_workers=6, pin_memory=True)
    #^ found; site loader num_workers=6 persistent_workers=false pin_memory=true batches_per_epoch=3 epochs_started=40


def run(folds):
    loaders = [loader_for(fold, 512) for fold in folds]
    for epoch in range(200):
        for loader in loaders:
            for x in loader:  #> cost cpu_ms=90 idle_ms=88 loader_ms=90; use loader
                train(x)  #> cost device_ms=30


run(load_folds())
