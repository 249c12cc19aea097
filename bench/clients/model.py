"""A model that behaves like a small one with tools: it calls one, reads its result, and follows a schema."""

import json
from typing import Any

from tests.testkit.stub_model import Reply, Seen, StubModel

ANSWER = "Rapeseed oil [1]."


class ToolModel(StubModel):
    """Calls the first tool for each question, then answers; a tool that ends the task is called with the answer."""

    def next_reply(self, seen: Seen) -> Reply:
        """Return what such a model would say."""
        body = seen.body
        usage = {"prompt_tokens": len(json.dumps([body["messages"], body.get("tools")])) // 4, "completion_tokens": 6}
        last = body["messages"][-1]
        done = last["role"] == "tool" or "Observation:" in json.dumps(last["content"])
        functions = [tool["function"] for tool in body.get("tools", ()) if body.get("tool_choice") != "none"]
        fitting = [one for one in functions if one["name"].startswith("final") == done]
        if fitting:
            schema = fitting[0].get("parameters") or {}
            call = {
                "id": f"call_{len(self.requests)}",
                "name": fitting[0]["name"],
                "arguments": instance(schema, schema),
            }
            return Reply(tool_calls=[call], usage=usage)
        form = body.get("response_format", {})
        if form.get("type") == "json_schema":
            schema = form["json_schema"]["schema"]
            return Reply(json.dumps(instance(schema, schema)), usage=usage)
        return Reply(ANSWER, usage=usage)


def instance(schema: dict[str, Any], whole: dict[str, Any]) -> Any:
    """Return a value that fits a schema."""
    if "$ref" in schema:
        return instance(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "object")
    if kind == "object":
        wanted = schema.get("required", schema.get("properties", {}))
        return {name: instance(schema["properties"][name], whole) for name in wanted}
    if kind == "array":
        return [instance(schema.get("items", {"type": "string"}), whole)]
    return {"string": "rapeseed oil", "integer": 4, "number": 4, "boolean": True}.get(str(kind))
