"""Run by an interpreter that has tensorboard and torch_tb_profiler: what they read in a log folder."""

import json
import sys
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tensor_util
from torch_tb_profiler.profiler.data import RunProfileData

folder = Path(sys.argv[1])
events = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
events.Reload()
tags = events.Tags()
(trace,) = folder.glob("*.pt.trace.json.gz")
plugin = RunProfileData.parse("warpline", "1", str(trace), str(folder))
found = {
    "scalars": {tag: [event.value for event in events.Scalars(tag)] for tag in tags["scalars"]},
    "texts": {
        tag: tensor_util.make_ndarray(events.Tensors(tag)[0].tensor_proto).flatten()[0].decode()
        for tag in tags["tensors"]
    },
    "steps": list(plugin.steps_names),
    "kernel_us": float(plugin.kernel_stat["sum"].sum()),
}
print(json.dumps(found))
