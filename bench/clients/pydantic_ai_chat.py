"""pydantic-ai: an agent with a tool and a typed answer, over chat and over responses; three ways of typing it."""

import sys

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

QUESTION = "What does the lamp of the lighthouse burn?"


class Fuel(BaseModel):
    """What is burnt."""

    name: str
    hours: int


def height(lamp: str) -> str:
    """Return how high a lamp is."""
    return f"{lamp}: 40 m"


provider = OpenAIProvider(base_url=sys.argv[1], api_key="none")
for kind in (OpenAIChatModel, OpenAIResponsesModel):
    model = kind("rag-assistant", provider=provider)
    run = Agent(model, tools=[height]).run_sync(QUESTION)
    print(f"{kind.__name__}:", run.output, "|", run.usage.requests, "requests")
    print("  typed by a tool:", repr(Agent(model, tools=[height], output_type=Fuel).run_sync(QUESTION).output))
    print("  typed by a schema:", repr(Agent(model, output_type=NativeOutput(Fuel)).run_sync(QUESTION).output))
