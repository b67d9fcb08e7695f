#> flags autocast=true allow_tf32=true; totals idle_ms=0.1; steps device_busy_percent=99.9
#> memory peak_bytes=90000000000 growth_bytes_per_step=0
import torch
import torch.nn.functional as F


class Attention(torch.nn.Module):
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)  #> cost device_ms=9 forward_ms=3 backward_ms=6
        y = F.scaled_dot_product_attention(
            q, k, v, is_causal=True
        )  #> cost device_ms=14 forward_ms=4 backward_ms=10
        return self.out(y)  #> cost device_ms=4 forward_ms=1.5 backward_ms=2.5


def train(model, stream, optimizer):
    step = torch.compile(model)  #> site compile mode=default
    for tokens in stream:
        tokens = tokens.to("cuda", non_blocking=True)  #> cost device_ms=0.02 copy_ms=0.02
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = step(tokens)  #> cost device_ms=3
        loss.backward()  #> cost cpu_ms=12
        optimizer.step()  #> cost device_ms=1.2
        optimizer.zero_grad(set_to_none=True)  #> cost cpu_ms=0.1
