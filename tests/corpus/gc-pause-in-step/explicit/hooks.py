from gc import collect


def after_step():
    collect()  #> found; cost cpu_ms=8 idle_ms=8 gc_ms=8
