"""Measures fixes on the user's script: the plain and the changed script run in turn, in fresh processes.

The user's files are never written. The changed text replaces the original in the memory of the timed process,
so a crash, a cancel or ``kill -9`` leaves the sources unchanged.
"""
