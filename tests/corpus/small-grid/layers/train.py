from layers import sorted_rows

for x in batches:
    loss = sorted_rows(x).sum()  #> cost device_ms=1
