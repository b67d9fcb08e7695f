"""Tries replacements: the same computation written out and as one torch call, on random numbers.

Runs in a child of the user's interpreter, after the script has ended, and imports nothing of the user's.
One module per kind of replacement (``kinds.py`` lists them): each gives the two computations.
"""
