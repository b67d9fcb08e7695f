"""The device's memory is nearly full.

## What it does

Finds a step whose memory peak is above 92 % of the device's memory (97 % is an error), and the line
that holds most of it at that moment.

## Why is this slow

Close to the limit, the allocator frees cached memory and calls the driver during the step, and waits
for the device each time. A slightly larger batch fails.

## Example

```python
#> device memory_bytes=80000000000; memory peak_bytes=77000000000
for images in loader:
    loss = model(images)  #> found; cost device_ms=20 memory_bytes=40000000000
    loss.backward()
```

## Use instead

A smaller batch with gradient accumulation, activation checkpointing
(`torch.utils.checkpoint.checkpoint`) of the largest blocks, or bf16 autocast, which halves the
activations.

## Fix safety

Display: the right choice depends on the model.

## References

- [Understanding CUDA memory usage](https://docs.pytorch.org/docs/stable/torch_cuda_memory.html)
- [torch.utils.checkpoint](https://docs.pytorch.org/docs/stable/checkpoint.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from warpline.rulekit import Context, Draft, Rule, percent, size

#: Shares of the device's memory, in percent (TraceML; the TensorBoard plugin has one step at 90 %).
WARNING, ERROR = 92.0, 97.0


class MemoryHeadroom(Rule):
    area = "memory"
    needs = ("kernels",)

    def find(self, context: Context) -> Iterator[Draft]:
        peak = context.profile.facts.memory.peak_bytes
        total = context.device.memory_bytes
        holding = [cost for cost in context.profile.lines if cost.memory_bytes > 0]
        if not peak or not total or not holding:
            return
        share = 100 * peak / total
        if share < WARNING:
            return
        most = max(holding, key=lambda cost: cost.memory_bytes)
        place = most.place
        yield context.draft(
            place,
            "The step's memory peak is {share} of the device's memory; {held} of it was allocated here.",
            {
                "share": percent("memory peak", share, "device memory"),
                "held": size("held at the peak, allocated here", most.memory_bytes),
            },
            cost_ms=None,
            severity="error" if share >= ERROR else "warning",
        )
