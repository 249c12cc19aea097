"""litellm: chat, a tool, a schema, responses."""

import json
import os
import sys

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # Nothing is downloaded.
import litellm
from pydantic import BaseModel

QUESTION = [{"role": "user", "content": "What does the lamp of the lighthouse burn?"}]
PARAMETERS = {"type": "object", "properties": {"lamp": {"type": "string"}}, "required": ["lamp"]}
TOOLS = [{"type": "function", "function": {"name": "height", "description": "How high.", "parameters": PARAMETERS}}]


class Fuel(BaseModel):
    """What is burnt."""

    name: str
    hours: int


litellm.suppress_debug_info = True
fields = {"model": "openai/rag-assistant", "api_base": sys.argv[1], "api_key": "none", "num_retries": 0}
print("completion:", litellm.completion(messages=QUESTION, **fields).choices[0].message.content)
first = litellm.completion(messages=QUESTION, tools=TOOLS, **fields).choices[0]
call = first.message.tool_calls[0]
print("tool:", call.function.name, json.loads(call.function.arguments), "|", first.finish_reason)
result = {"role": "tool", "tool_call_id": call.id, "content": "40 m"}
answer = litellm.completion(messages=[*QUESTION, first.message, result], tools=TOOLS, **fields)
print("  with its result:", answer.choices[0].message.content)
print("schema:", Fuel.model_validate_json(
    litellm.completion(messages=QUESTION, response_format=Fuel, **fields).choices[0].message.content
))  # fmt: skip
print("responses:", litellm.responses(input=QUESTION[0]["content"], **fields).output[0].content[0].text)
try:
    litellm.text_completion(prompt="The lamp burns", **{**fields, "model": "text-completion-openai/rag-assistant"})
except Exception as error:
    print("text_completion is refused:", str(error).rpartition(" - ")[2])
