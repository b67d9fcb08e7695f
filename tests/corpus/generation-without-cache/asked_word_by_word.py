"""A method without a loop calls the model; a loop asks it for one note after the other."""

import torch
import torch.nn.functional as F


class Melody(torch.nn.Module):
    def forward(self, notes):
        q, k, v = self.project(self.embed(notes)).chunk(3, -1)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        #^ cost step_ms=40 device_ms=40 function=Melody.forward
        #^ op aten::linear shapes=[[4,200,768],[768,768]] count=0.25 device_ms=9
        #^ op aten::linear shapes=[[4,201,768],[768,768]] count=0.25 device_ms=9
        #^ op aten::linear shapes=[[4,202,768],[768,768]] count=0.25 device_ms=9
        #^ op aten::scaled_dot_product_attention shapes=[[4,12,200,64],[4,12,200,64]] count=0.25 device_ms=2
        #^ op aten::scaled_dot_product_attention shapes=[[4,12,201,64],[4,12,201,64]] count=0.25 device_ms=2
        #^ op aten::scaled_dot_product_attention shapes=[[4,12,202,64],[4,12,202,64]] count=0.25 device_ms=2


class Composer:
    @torch.no_grad()
    def odds(self, notes):
        if self.loud:
            scores = self.melody(notes)
            #^ cost calls=1 function=Composer.odds
            #^ cost called='[["/project/asked_word_by_word.py","Melody.forward"]]'
        return scores[:, -1].softmax(-1)

    def compose(self, notes, until):
        while notes.shape[1] < until:
            odds = self.odds(notes)
            #^ found; cost calls=1 function=Composer.compose
            #^ cost called='[["/project/asked_word_by_word.py","Composer.odds"]]'
            notes = torch.hstack([notes, odds.multinomial(1)])
        return notes


for title in titles:
    print(title, composer.compose(composer.first(title), 400))
