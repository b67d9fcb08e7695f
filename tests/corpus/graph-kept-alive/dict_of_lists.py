#> memory growth_bytes_per_step=33554432 peak_bytes=4000000000
from collections import defaultdict

history = defaultdict(list)
for epoch in range(5):
    for x, y in data:
        err = criterion(net(x), y)  #> cost device_ms=25 kept_bytes=33554432
        err.backward()
        optimizer.step()
        history["train"].append(err)  #> found
