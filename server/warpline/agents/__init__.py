"""Warpline for coding agents: an MCP server. Each tool runs a command and returns a short answer."""
