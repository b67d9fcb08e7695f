def route(x):
    h = x * 2  #> cost device_ms=1
    if h.sum() > 0:
        #^ found; cost idle_ms=3 cpu_ms=3; event graph_break reason="generic_jump TensorVariable()"
        return h.relu()  #> cost device_ms=3
    return h.tanh()
