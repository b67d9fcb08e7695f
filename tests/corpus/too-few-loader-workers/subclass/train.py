#> flags cpu_count=64; workers batch_ms=70
from loading import FastLoader
from task import TASK, learn

for batch in FastLoader(TASK):  #> cost cpu_ms=40 idle_ms=38 loader_ms=40; use loader
    learn(batch)  #> cost device_ms=30
