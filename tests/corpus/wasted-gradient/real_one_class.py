# corpus: run, may launch-bound small-batch gc-pause-in-step unfused-elementwise
# Teacher and pupil run the same lines; the loss asks for the gradients of both.
import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Classifier(torch.nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(depth))
        self.into, self.out = torch.nn.Linear(128, width), torch.nn.Linear(width, 32)

    def forward(self, x):
        x = self.into(x)
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.out(x)


class Distiller:
    def __init__(self):
        self.expert, self.pupil = Classifier(384, 6).eval(), Classifier(64, 2)  #> found
        self.optimizer = torch.optim.SGD(self.pupil.parameters(), lr=0.01)

    def loss(self, x):
        guide = self.expert(x)
        mine = self.pupil(x)
        return F.kl_div(F.log_softmax(mine, -1), F.softmax(guide, -1), reduction="batchmean")


distiller = Distiller()
x = torch.randn(64, 128)
for step in range(3000):
    loss = distiller.loss(x)
    loss.backward()
    distiller.optimizer.step()
    distiller.optimizer.zero_grad()
