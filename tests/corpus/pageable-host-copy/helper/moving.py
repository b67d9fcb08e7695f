def to_device(batch, device):
    return {
        name: tensor.to(device)  #> cost device_ms=3.5 copy_ms=3.5 cpu_ms=4 sync_ms=3.5
        #^ kernel "Memcpy HtoD (Pageable -> Device)" device_ms=3.5 kind=copy
        for name, tensor in batch.items()
    }
