"""What a client can ask for, a file per method, and what the server tells it unasked."""
