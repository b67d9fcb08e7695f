"""Formulas that torch has a fused call for, recognised in terms."""
