"""Samples of a thread's frames, read from its memory by another process."""
