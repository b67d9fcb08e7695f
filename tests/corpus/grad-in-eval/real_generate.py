# corpus: run, may launch-bound small-batch cat-in-loop gc-pause-in-step
import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 256))
net.eval()
state = torch.randn(64, 256)
for step in range(6000):  #> found
    out = net(state)
    state = out.detach() * 0.5
