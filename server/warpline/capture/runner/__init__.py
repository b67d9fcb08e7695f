"""Runs in the user's interpreter: records, never judges.

Stdlib and torch only, Python 3.9 syntax, torch 2.4 or newer, no numpy. It is handed to that
interpreter by path and loaded under a private name, so nothing of the user's can collide with it.
torch is not imported before the script does it.
"""
