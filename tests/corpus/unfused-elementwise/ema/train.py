from update import blend

for batch in loader:
    loss = model(batch)  #> cost device_ms=20; kernel sm90_gemm count=10 device_ms=20
    blend(model, average)
