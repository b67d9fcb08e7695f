#> device name="NVIDIA A100" capability=(8,0) multiprocessors=108
from fused import softmax

for x in batches:
    softmax(x).sum()  #> cost cpu_ms=0.3
