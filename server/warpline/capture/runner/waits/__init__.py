"""Records what makes the host wait: copies, syncs, garbage collections."""
