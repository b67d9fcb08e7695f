"""The language server: the only part that knows pygls and lsprotocol. PROTOCOL.md says what it speaks."""
