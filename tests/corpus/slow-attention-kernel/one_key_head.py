#> steps step_ms=40
import torch
import torch.nn.functional as F


class MultiQuery(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.to_q = torch.nn.Linear(config.width, config.width)
        self.to_kv = torch.nn.Linear(config.width, 2 * config.head)

    def forward(self, x):
        q = self.to_q(x).unflatten(-1, (-1, self.config.head)).transpose(1, 2)
        key, value = self.to_kv(x).unsqueeze(1).chunk(2, dim=-1)
        out = F.scaled_dot_product_attention(
            #^ found; cost device_ms=24; op aten::_scaled_dot_product_attention_math; op aten::bmm device_ms=24
            #^ op aten::scaled_dot_product_attention shapes=[[8,8,512,64],[8,1,512,64],[8,1,512,64]] dtypes=c10::BFloat16
            q, key, value, is_causal=True
        )
        return out.transpose(1, 2).flatten(2)


for step, tokens in enumerate(loader):
    loss = model(tokens).square().mean()  #> cost device_ms=2
    loss.backward()
