#> steps step_ms=50 device_busy_percent=40
from engine import fit
from nets import make_net

fit(make_net(depth=48).cuda(), lr=1e-3)
