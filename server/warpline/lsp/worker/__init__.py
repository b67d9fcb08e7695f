"""The process of its own for all that is heavy, and the server's end of it."""
