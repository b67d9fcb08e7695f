#> totals idle_ms=0.8; steps device_busy_percent=97; flags autocast=false allow_tf32=true float32_matmul_precision=high
"""Host work on purpose: the environment is stepped in its own processes and waited for rarely."""

import torch

torch.set_float32_matmul_precision("high")
replay = torch.empty(1_000_000, 64, device="cuda")
for update in range(100_000):
    rows = torch.randint(0, 1_000_000, (4096,), device="cuda")  #> cost device_ms=0.02
    loss = critic(replay[rows]).square().mean()  #> cost device_ms=28 idle_ms=0.8 step_ms=28
    loss.backward()  #> cost cpu_ms=2
    optimizer.step()  #> cost device_ms=0.3
    optimizer.zero_grad(set_to_none=True)
    if update % 1000 == 0:
        print(loss.item())
