"""Tables and progress for a terminal, plain text when piped."""
