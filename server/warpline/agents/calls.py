"""The MCP server, which answers a wrong call with one line that says what to change."""

from __future__ import annotations

from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, InputRequiredResult
from pydantic import ValidationError


class Server(MCPServer[Any]):
    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Raises ToolError. The SDK's own method ignores arguments that a tool does not have, and answers a
        wrong one with several lines of pydantic's."""
        tool = self._tool_manager.get_tool(name)
        if tool is None:
            raise ToolError(f"there is no tool {name}; there are {_listed(self._tool_manager.list_tools())}")
        known = tool.parameters["properties"]
        unknown = [each for each in arguments if each not in known]
        if unknown:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise ToolError(f"{name} has no argument {', '.join(unknown)}; {takes}")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise ToolError(f"{name}: {'; '.join(map(_said, error.__cause__.errors()))}") from None
            raise


def _listed(tools: list[Any]) -> str:
    return ", ".join(tool.name for tool in tools)


def _said(error: Any) -> str:
    """``script is missing`` and ``timeout_s: input should be greater than 0``."""
    name = ".".join(map(str, error["loc"]))
    if error["type"] == "missing":
        return f"{name} is missing"
    message = str(error["msg"])
    return f"{name}: {message[:1].lower()}{message[1:]}"
