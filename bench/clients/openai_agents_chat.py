"""openai-agents: an agent with a tool and a typed answer, over responses (its default) and over chat."""

import sys

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI
from pydantic import BaseModel

QUESTION = "What does the lamp of the lighthouse burn?"


class Fuel(BaseModel):
    """What is burnt."""

    name: str
    hours: int


@function_tool
def height(lamp: str) -> str:
    """Return how high a lamp is."""
    return f"{lamp}: 40 m"


set_tracing_disabled(True)
client = AsyncOpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
for kind in (OpenAIResponsesModel, OpenAIChatCompletionsModel):
    model = kind(model="rag-assistant", openai_client=client)
    run = Runner.run_sync(Agent("keeper", model=model, tools=[height]), QUESTION)
    print(f"{kind.__name__}:", run.final_output, "|", [type(item).__name__ for item in run.new_items])
    again = Runner.run_sync(
        Agent("keeper", model=model, tools=[height]), [*run.to_input_list(), {"role": "user", "content": "And now?"}]
    )
    print("  second turn:", again.final_output)
    print("  typed:", repr(Runner.run_sync(Agent("keeper", model=model, output_type=Fuel), QUESTION).final_output))
