from hooks import after_step

for batch in batches:
    learn(batch)  #> cost device_ms=20
    after_step()
