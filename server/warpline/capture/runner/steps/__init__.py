"""Where a step begins: the possible signs of a step, and which of them counts."""
