import torch


class Words(torch.nn.Module):
    """A table that is most of the model, and an optimizer whose moments change all of it."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(2_000_000, 64)
        #^ found; site module type=Embedding num_embeddings=2000000 embedding_dim=64

    def forward(self, ids):
        return self.table(ids).mean(1)
        #^ cost step_ms=3 device_ms=3 backward_ms=2; op aten::embedding shapes=[[2000000,64],[512,32]]
        #^ op aten::embedding_dense_backward phase=backward shapes=[[512,32,64],[512,32]] device_ms=0.3
        #^ op aten::fill_ phase=backward shapes=[[2000000,64],[]] device_ms=1.5


def fit(model, loader):
    opt = torch.optim.Adam(model.parameters(), fused=True)
    #^ site optimizer type=Adam fused=true elements=128100000 shapes=[[1,2000000,64],[2,64,64]]
    for ids, target in loader:
        loss = (model(ids) - target).square().mean()  #> cost device_ms=1
        opt.zero_grad()
        loss.backward()
        opt.step()  #> use optimizer; cost step_ms=9 device_ms=9; op aten::_fused_adam_ device_ms=9
