#> device memory_bytes=80000000000; memory peak_bytes=74500000000
hidden = backbone(tokens)  #> cost device_ms=50 memory_bytes=20000000000
logits = head(hidden)  #> found; cost device_ms=20 memory_bytes=33000000000
loss = cross_entropy(logits.float(), targets)  #> cost device_ms=4 memory_bytes=8000000000
