import torch
from layers import build_norm

norm = build_norm({"kind": "rms", "dim": 4096, "eps": 1e-5})
for h in hidden_states:
    out = norm(h)  #> cost cpu_ms=0.5
    out.sum().backward()  #> cost device_ms=2
