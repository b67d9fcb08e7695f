#> totals idle_ms=12
from transformers import Trainer, TrainingArguments


class Distiller(Trainer):
    def __init__(self, *args, teacher=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.teacher = teacher


arguments = TrainingArguments("student", num_train_epochs=3, bf16=True)
#^ found
#^ site framework construction=transformers.TrainingArguments "parameters=['logging_nan_inf_filter']"
distiller = Distiller(student, arguments, train_dataset=pairs, teacher=teacher)
distiller.train()  #> cost step_ms=60 device_ms=48 idle_ms=12 cpu_ms=58 sync_ms=30
#^ inside file=/lib/transformers/trainer.py line=1914 sync_ms=25 text='and (torch.isnan(loss)'
