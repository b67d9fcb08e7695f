"""What the server knows: open documents, folders, settings, and the runs that are shown."""
