from torch import nn, optim


class Towers(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.users = nn.Embedding(
            #^ found; site module type=Embedding num_embeddings=900000 embedding_dim=64
            num_embeddings=cfg.users, embedding_dim=64,
        )
        self.items = nn.Embedding(5000, 64)  #> site module type=Embedding num_embeddings=5000 embedding_dim=64

    def forward(self, user, item):
        u = self.users(user)
        #^ cost step_ms=3 device_ms=3 backward_ms=2; op aten::embedding shapes=[[900000,64],[8192]] device_ms=0.2
        #^ op aten::embedding_dense_backward phase=backward shapes=[[8192,64],[8192]] device_ms=0.3
        #^ op aten::fill_ phase=backward shapes=[[900000,64],[]] device_ms=1.5
        i = self.items(item)
        #^ cost step_ms=1 device_ms=1; op aten::embedding shapes=[[5000,64],[8192]] device_ms=0.2
        #^ op aten::embedding_dense_backward phase=backward shapes=[[8192,64],[8192]] device_ms=0.3
        return (u * i).sum(-1)


def fit(model, loader):
    opt = optim.Adagrad(model.parameters(), lr=0.05)
    #^ site optimizer type=Adagrad elements=57920000 shapes=[[1,900000,64],[1,5000,64]] with.weight_decay=0
    for user, item, bought in loader:
        loss = (model(user, item) - bought).square().mean()  #> cost device_ms=1
        opt.zero_grad()
        loss.backward()
        opt.step()  #> use optimizer; cost step_ms=6 device_ms=6; op aten::_foreach_addcdiv_ device_ms=6
