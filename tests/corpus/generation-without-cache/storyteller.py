"""A generator function that yields word after word."""

import torch


def tell(net, prompt, words, temperature=0.9):
    text = prompt
    with torch.no_grad():
        while text.shape[1] < words:
            odds = net(text)[:, -1] / temperature
            #^ found; cost step_ms=40 device_ms=40
            #^ op aten::linear shapes=[[4,200,768],[768,768]] count=0.25 device_ms=9
            #^ op aten::linear shapes=[[4,201,768],[768,768]] count=0.25 device_ms=9
            #^ op aten::linear shapes=[[4,202,768],[768,768]] count=0.25 device_ms=9
            #^ op aten::scaled_dot_product_attention shapes=[[4,12,200,64],[4,12,200,64]] count=0.25 device_ms=2
            #^ op aten::scaled_dot_product_attention shapes=[[4,12,201,64],[4,12,201,64]] count=0.25 device_ms=2
            #^ op aten::scaled_dot_product_attention shapes=[[4,12,202,64],[4,12,202,64]] count=0.25 device_ms=2
            chosen = torch.multinomial(odds.softmax(-1), 1)
            text = torch.hstack([text, chosen])
            yield chosen
