"""The Model Context Protocol for other assistants, one message in and one out; and llms.txt."""

import json

from flask import Blueprint, Response, render_template, request

from rag_assistant import __version__
from rag_assistant.web.identity import identity
from rag_assistant.web.mcp.protocol import reply_to
from rag_assistant.web.mcp.tools import AssistantTools
from rag_assistant.web.routing import PUBLIC, READ, services

blueprint = Blueprint("mcp", __name__)


@blueprint.post("/mcp", policy=READ)
def mcp() -> Response:
    """Answer a message of a client."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    reply = reply_to(request.get_data(), AssistantTools(services(), identity().abilities), headers)
    if reply.message is None:
        return Response(status=reply.status)
    return Response(json.dumps(reply.message), reply.status, content_type="application/json")


@blueprint.get("/llms.txt", policy=PUBLIC)
def llms_txt() -> Response:
    """Describe this server and the addresses that programs can use."""
    tools = [tool["name"] for tool in AssistantTools(services()).listed()]
    text = render_template("llms.txt", version=__version__, tools=tools)
    return Response(text, content_type="text/plain; charset=utf-8")
