#> totals idle_ms=6
import logging

log = logging.getLogger(__name__)


def loop(model, data, optimizer, clip):
    for step in range(10_000):
        batch = data.next()
        loss = model(batch)  #> cost device_ms=20 idle_ms=6 step_ms=26
        loss.backward()
        log.info("step %d loss %.4f", step, loss.item())  #> found; cost cpu_ms=15 sync_ms=15 step_ms=0.3
        optimizer.step()  #> cost device_ms=1
