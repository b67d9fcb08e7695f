import torch


class Classifier(torch.nn.Module):
    """A batch reads few of the words, but the table is a small part of what AdamW updates."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(30522, 768)
        #^ site module type=Embedding num_embeddings=30522 embedding_dim=768

    def forward(self, ids):
        x = self.words(ids)
        #^ cost step_ms=1 device_ms=1; op aten::embedding shapes=[[30522,768],[8,128]] device_ms=0.1
        #^ op aten::embedding_dense_backward phase=backward shapes=[[8,128,768],[8,128]] device_ms=0.1
        #^ op aten::fill_ phase=backward shapes=[[30522,768],[]] device_ms=0.3
        return self.layers(x)  #> cost step_ms=30 device_ms=30; op aten::mm device_ms=30


def fit(model, loader):
    opt = torch.optim.AdamW(model.parameters(), fused=True)
    #^ site optimizer type=AdamW fused=true elements=110000000 shapes=[[1,30522,768],[72,768,768]]
    for ids, target in loader:
        loss = (model(ids) - target).square().mean()  #> cost device_ms=1
        opt.zero_grad()
        loss.backward()
        opt.step()  #> use optimizer; cost step_ms=4 device_ms=4; op aten::_fused_adamw_ device_ms=4
