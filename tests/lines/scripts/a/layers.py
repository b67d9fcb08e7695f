import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(6, 6)

    def forward(self, x):
        x = self.layer(x)  #> addmm AddmmBackward0
        return torch.relu(x)  #> relu ReluBackward0
