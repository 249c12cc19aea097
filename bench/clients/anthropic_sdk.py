"""The anthropic SDK in Python: messages, streams, tools, counts."""

import sys

import anthropic

QUESTION = "What does the lamp of the lighthouse burn?"
MODEL = "rag-assistant"
client = anthropic.Anthropic(base_url=sys.argv[1].removesuffix("/v1"), api_key="none", max_retries=0)
asked = [{"role": "user", "content": QUESTION}]
answer = client.messages.create(model=MODEL, max_tokens=500, messages=asked)
print("message:", answer.content[0].text, "|", answer.stop_reason)
print("  sources:", [one["document"] for one in answer.rag_assistant["sources"]])

talk = [{"role": role, "content": f"{role} {n}"} for n in range(1, 8) for role in ("user", "assistant")]
with client.messages.stream(model=MODEL, max_tokens=500, messages=[*talk, *asked]) as stream:
    text = "".join(stream.text_stream)
    whole = stream.get_final_message()
print("stream:", text, "|", whole.usage.output_tokens, "tokens")
trimmed = client.messages.create(model=MODEL, max_tokens=500, messages=[*talk, *asked])
print("  history_trimmed:", trimmed.history_trimmed)

tools = [{"name": "height", "input_schema": {"type": "object", "properties": {"lamp": {"type": "string"}}}}]
first = client.messages.create(model=MODEL, max_tokens=500, messages=asked, tools=tools)
(call,) = (one for one in first.content if one.type == "tool_use")
print("tool:", call.name, call.input, "|", first.stop_reason)
result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "40 m"}]}
said = {"role": "assistant", "content": first.content}
again = client.messages.create(model=MODEL, max_tokens=500, messages=[*asked, said, result], tools=tools)
print("  with its result:", again.content[0].text)
print("tokens:", client.messages.count_tokens(model=MODEL, messages=[*talk, *asked]).input_tokens)
try:
    client.messages.create(model="claude", max_tokens=500, messages=asked)
except anthropic.NotFoundError as error:
    print(f"refused: {error.status_code} {error.body['error']['type']}: {error.body['error']['message']}")
