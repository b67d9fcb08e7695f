"""Budgets for a pull request: what a step, a function or a line may cost, and whether a run keeps to it."""
