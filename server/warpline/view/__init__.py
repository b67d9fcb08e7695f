"""The texts and tables that a person sees, as plain data: no LSP, no terminal, no HTML."""
