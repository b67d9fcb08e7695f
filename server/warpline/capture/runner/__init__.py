"""Runs in the user's interpreter. It records; the server draws the conclusions.

Standard library and torch only, Python 3.9 syntax, torch 2.4 or newer, no numpy. That interpreter gets it by
path and loads it under a private name, so it cannot collide with the user's modules. It imports torch only
after the script has.
"""
