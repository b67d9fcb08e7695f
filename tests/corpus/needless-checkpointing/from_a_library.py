#> device memory_bytes=80000000000
#> memory peak_bytes=20000000000 free_bytes=50000000000
from transformers import AutoModel

model = AutoModel.from_pretrained("bert-base-uncased").cuda()
model.gradient_checkpointing_enable()
for batch in loader:
    loss = model(**batch).loss
    #^ found; cost step_ms=90 device_ms=90 recompute_ms=20; op _NoopSaveInputs count=12
    #^ op aten::addmm phase=recompute device_ms=0.1 count=72 shapes=[[768],[4096,768],[768,768]] dtypes=float,float,float
    loss.backward()
