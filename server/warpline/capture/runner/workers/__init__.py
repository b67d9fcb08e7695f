"""Loader workers: what their lines cost, and how they end with a stopped script."""
