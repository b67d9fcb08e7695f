from torch.utils.data import DataLoader

KW = {"batch_size": 64, "num_workers": 8, "pin_memory": False}  #> found


def main():
    loader = DataLoader(make_set(), **KW)  #> site loader num_workers=8 pin_memory=false
    for volume, mask in loader:  #> cost cpu_ms=0.2; use loader
        volume, mask = volume.cuda(), mask.cuda()  #> cost device_ms=9 copy_ms=9 cpu_ms=9 sync_ms=8
        #^ kernel "Memcpy HtoD (Pageable -> Device)" device_ms=9 count=2 kind=copy
        segment(volume, mask)  #> cost device_ms=60


main()
