"""Budgets for a pull request: limits for a step, a function or a line, and whether a run meets them."""
