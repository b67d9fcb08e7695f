import torch

pinned = torch.empty(64, 3, 512, 512).pin_memory()
for frame in camera():
    pinned.copy_(frame)
    image = pinned.to(  #> found; cost device_ms=4 copy_ms=4 sync_ms=4; kernel "Memcpy HtoD (Pinned -> Device)" device_ms=4 kind=copy
        "cuda:0", torch.float16
    )
    detect(image)  #> cost device_ms=12
