#> manifest world_size=4; totals collective_wait_ms=12 late_rank=2 late_rank_ms=12
for batch in batches:
    out = ddp(batch)  #> found; cost device_ms=50 communication_ms=20
    out.backward()
    if rank == 0:
        save_images(out)
