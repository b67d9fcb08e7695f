"""The worker process for heavy jobs, and the server's side of it."""
