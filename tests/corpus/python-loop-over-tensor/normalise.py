import torch

def log_rows(table):
    out = []
    for row in range(len(table)):  #> found
        out.append(torch.log(table[row] + 1.0))
        #^ cost step_ms=9 cpu_ms=9 idle_ms=8 device_ms=1 launches=512; op aten::select count=256 cpu_ms=2
    return torch.stack(out)
