#> device memory_bytes=80000000000
#> memory peak_bytes=9000000000 free_bytes=60000000000
import torch
import torch.utils.checkpoint as ckpt


class Encoder(torch.nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.save_memory = cfg.save_memory
        self.layers = torch.nn.ModuleList(Layer(cfg) for _ in range(cfg.depth))

    def forward(self, x, mask):
        for layer in self.layers:
            if self.save_memory:
                x = ckpt.checkpoint(layer, x, mask, use_reentrant=True)
                #^ found; cost step_ms=2; op CheckpointFunction count=12
            else:
                x = layer(x, mask)
        return x


class Layer(torch.nn.Module):
    def forward(self, x, mask):
        return x + self.mlp(self.attend(x, mask))
        #^ cost step_ms=50 device_ms=50 recompute_ms=12
        #^ op aten::addmm phase=recompute device_ms=0.1 count=48 shapes=[[4096],[8192,1024],[1024,4096]] dtypes=float,float,float


for x, mask in loader:
    loss = head(encoder(x, mask)).mean()  #> cost device_ms=1
    loss.backward()
