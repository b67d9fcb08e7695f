"""Where a step begins: the sources it can be heard from, and which of them is the beat."""
