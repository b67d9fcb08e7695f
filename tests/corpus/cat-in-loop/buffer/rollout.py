import torch

def gather(episode):
    states = None
    while not done(episode):
        s = act(episode)  #> cost cpu_ms=2
        if states is None:
            states = s
        else:
            states = torch.cat([states, s], dim=0)  #> found; cost cpu_ms=4; op aten::cat count=199 cpu_ms=4
    return states
