import torch

def smooth(series, alpha):
    state = series[:, 0]
    kept = [state]
    for t in range(1, series.shape[1]):  #> found
        value = series[:, t]  #> cost step_ms=1 cpu_ms=1 idle_ms=1; op aten::select count=200 cpu_ms=1
        state = alpha * state + (1 - alpha) * value  #> found launch-bound; cost step_ms=9 cpu_ms=9 idle_ms=9 launches=600
        kept.append(series[:, t] - state)
        #^ cost step_ms=8 cpu_ms=8 idle_ms=7 launches=800; op aten::select count=200 cpu_ms=1
    return torch.stack(kept, 1)
