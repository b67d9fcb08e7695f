#> device memory_bytes=80000000000
#> memory peak_bytes=60000000000 free_bytes=15000000000
from torch.utils.checkpoint import checkpoint


def forward(blocks, x):
    """What is recomputed takes more than there is."""
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=False)
        #^ cost step_ms=500 device_ms=500 recompute_ms=120; op _NoopSaveInputs count=48
        #^ op aten::mm phase=recompute device_ms=0.1 count=192 shapes=[[65536,2048],[2048,8192]] dtypes=c10::BFloat16,c10::BFloat16
    return x


for batch in loader:
    loss = forward(blocks, batch).mean()
    loss.backward()
