#> memory growth_bytes_per_step=4194304
outputs = []


def keep(module, args, out):
    outputs.append(out.clone())  #> found; cost device_ms=1 kept_bytes=4194304


net.register_forward_hook(keep)
for x in data:
    net(x)  #> cost device_ms=30 kept_bytes=100
