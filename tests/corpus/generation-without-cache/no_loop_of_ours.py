"""A library's model writes the whole answer below one line; the loop around it is over questions."""

import torch


@torch.inference_mode()
def answer(writer, question):
    return writer.generate(question)
    #^ found; cost step_ms=40 device_ms=40 function=answer
    #^ op aten::linear shapes=[[4,200,768],[768,768]] count=0.25 device_ms=9
    #^ op aten::linear shapes=[[4,201,768],[768,768]] count=0.25 device_ms=9
    #^ op aten::linear shapes=[[4,202,768],[768,768]] count=0.25 device_ms=9
    #^ op aten::scaled_dot_product_attention shapes=[[4,12,200,64],[4,12,200,64]] count=0.25 device_ms=2
    #^ op aten::scaled_dot_product_attention shapes=[[4,12,201,64],[4,12,201,64]] count=0.25 device_ms=2
    #^ op aten::scaled_dot_product_attention shapes=[[4,12,202,64],[4,12,202,64]] count=0.25 device_ms=2


for question in questions:
    print(answer(writer, question))
    #^ cost calls=1 called='[["/project/no_loop_of_ours.py","answer"]]'
