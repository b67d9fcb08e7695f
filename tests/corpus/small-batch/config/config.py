TRAIN = dict(
    batch_size=2,  #> found
    num_workers=8,
    pin_memory=True,
)
