"""A file of the user's, parsed and changed: what its text means, edits of it, and the file on disk."""
