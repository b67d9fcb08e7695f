import torch

def sorted_rows(x):
    return torch.sort(x, dim=0).values
    #^ found; cost device_ms=6; kernel radixSortKVInPlace count=1 device_ms=6 grid=(16,2,1) block=(512,1,1)
