"""Start the target, watch it, cancel it; leaves a run folder. The only place that runs user code."""
