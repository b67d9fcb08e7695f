"""A long run over its time: whether its steps get slower, its memory grows, or some of it is slow."""
