#> totals idle_ms=20
import transformers


def fine_tune(model, tokenized, collator):
    settings = transformers.TrainingArguments(output_dir="runs", per_device_train_batch_size=8)
    #^ found
    #^ site framework construction=transformers.TrainingArguments "parameters=['logging_nan_inf_filter']"
    trainer = transformers.Trainer(model, settings, collator, train_dataset=tokenized)
    trainer.train()  #> cost step_ms=90 device_ms=70 idle_ms=20 cpu_ms=85 sync_ms=45
    #^ inside file=/lib/transformers/trainer.py line=1914 sync_ms=40 text='and (torch.isnan(loss)'
