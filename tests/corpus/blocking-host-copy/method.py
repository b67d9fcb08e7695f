class Batch:
    def __init__(self, ids, mask):
        self.ids, self.mask = ids, mask

    def move(self, device):
        self.ids = self.ids.to(device)  #> found; cost device_ms=2 copy_ms=2 cpu_ms=2 sync_ms=2
        #^ kernel "Memcpy HtoD (Pinned -> Device)" device_ms=2 kind=copy; site to pinned=true non_blocking=false
        self.mask = self.mask.to(device, non_blocking=True)  #> cost device_ms=2 copy_ms=2
        #^ kernel "Memcpy HtoD (Pinned -> Device)" device_ms=2 kind=copy
        return self


for batch in stream():
    forward(batch.move("cuda"))  #> cost device_ms=30
