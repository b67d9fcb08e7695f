"""What a person sees, as plain data: no LSP, no terminal, no HTML."""
