"""Starts, watches and cancels the target; leaves a run folder. The only place that runs user code."""
