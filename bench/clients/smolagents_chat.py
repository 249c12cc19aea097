"""smolagents: an agent that calls a tool (with stop words, and a tool that ends its task), and a schema."""

import sys

from smolagents import LogLevel, OpenAIServerModel, ToolCallingAgent, tool


@tool
def height(lamp: str) -> str:
    """Return how high a lamp is.

    Args:
        lamp: The lamp.
    """
    return f"{lamp}: 40 m"


QUESTION = "What does the lamp of the lighthouse burn?"
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
model = OpenAIServerModel("rag-assistant", api_base=sys.argv[1], api_key="none")
agent = ToolCallingAgent(tools=[height], model=model, verbosity_level=LogLevel.OFF)
print("agent:", agent.run(QUESTION), "|", len(agent.memory.steps), "steps")
form = {"type": "json_schema", "json_schema": {"name": "fuel", "schema": SCHEMA, "strict": True}}
print("schema:", model([{"role": "user", "content": QUESTION}], response_format=form).content)
