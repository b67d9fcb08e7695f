import gc

import torch


class Cleaner:
    def on_step_end(self, trainer):
        torch.cuda.empty_cache()  #> found; cost cpu_ms=7 idle_ms=7


def run(trainer):
    for batch in trainer.batches:
        trainer.step(batch)  #> cost device_ms=30
        trainer.callback.on_step_end(trainer)
