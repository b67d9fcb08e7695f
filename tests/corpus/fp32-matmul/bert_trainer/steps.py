import torch as th
from transformers import BertConfig, BertForMaskedLM

class Trainer:
    def __init__(self, options):
        self.model = BertForMaskedLM(BertConfig()).cuda()
        self.opt = th.optim.AdamW(self.model.parameters(), fused=True)
        self.loader = options.loader

    def epoch(self):
        for batch in self.loader:
            ids = batch["input_ids"].cuda(non_blocking=True)
            labels = batch["labels"].cuda(non_blocking=True)
            result = self.model(input_ids=ids, labels=labels)
            #^ found; cost device_ms=210
            #^ op aten::addmm count=73 device_ms=60 dtypes=float,float,float shapes=[[768],[8192,768],[768,768]]
            #^ op aten::mm count=146 device_ms=120 phase=backward dtypes=float,float
            #^ op aten::bmm count=24 device_ms=10 dtypes=float,float
            loss = result.loss
            loss.backward()
            self.opt.step()  #> cost device_ms=4
            self.opt.zero_grad()
