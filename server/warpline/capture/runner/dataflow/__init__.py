"""Which operator got which tensors, in one step."""
