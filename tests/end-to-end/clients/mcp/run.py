"""Calls tools of an MCP server with the protocol's own client.

From stdin: `command` of the server, `mode` of the connection, `roots` that the client names (or null), and `calls`, each a tool with
its arguments. To stdout: the tools, and what each call answered. A line of the server's stdout that is not of the protocol fails it.
"""

import asyncio
import json
import sys

from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import ListRootsResult, Root


async def main():
    asked = json.load(sys.stdin)
    program, *arguments = asked["command"]
    strays = []

    async def roots(_context):
        return ListRootsResult(roots=[Root(uri=root) for root in asked["roots"]])

    async def message(received):
        if isinstance(received, Exception):
            strays.append(str(received))

    client = Client(
        StdioServerParameters(command=program, args=arguments, cwd=asked["folder"], env=asked["environment"]),
        mode=asked["mode"],
        list_roots_callback=roots if asked["roots"] is not None else None,
        message_handler=message,
        read_timeout_seconds=120,
    )
    async with client:
        tools = (await client.list_tools()).tools
        answers = []
        for tool, arguments in asked["calls"]:
            try:
                result = await client.call_tool(tool, arguments)
                text = "".join(part.text for part in result.content)
                answers.append({"error": result.is_error, "text": text})
            except Exception as error:  # noqa: BLE001: what the client raises is the answer
                answers.append({"error": True, "text": f"raised: {error}"})
    listed = {tool.name: tool.input_schema for tool in tools}
    print(json.dumps({"tools": listed, "answers": answers, "strays": strays}))


asyncio.run(main())
