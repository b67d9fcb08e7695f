"""Warpline for coding agents: an MCP server whose tools are the commands, with short answers."""
