"""The openai SDK in Python: chat, responses, embeddings."""

import sys

import openai
import pydantic

QUESTION = "What does the lamp of the lighthouse burn?"
client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
MODEL = "rag-assistant"
print("models:", ", ".join(one.id for one in client.models.list()))

chat = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": QUESTION}])
message = chat.choices[0].message
print("chat:", message.content)
print("  cites:", [(one.url_citation.title, one.url_citation.start_index) for one in message.annotations or []])
print("  history_trimmed:", chat.history_trimmed)

talk = [{"role": role, "content": f"{role} {n}"} for n in range(1, 8) for role in ("user", "assistant")]
stream = client.chat.completions.create(
    model=MODEL,
    messages=[*talk, {"role": "user", "content": QUESTION}],
    stream=True,
    stream_options={"include_usage": True},
)
chunks = list(stream)
print("stream:", "".join(one.choices[0].delta.content or "" for one in chunks if one.choices))
print("  usage:", chunks[-1].usage.total_tokens, "tokens")
history = chunks[0].rag_assistant["history"]
print("  of 7 turns sent along:", history["turns_kept"], "kept,", history["turns_dropped"], "dropped")
raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=[*talk, {"role": "user", "content": "?"}])
print("  as headers:", {name: value for name, value in sorted(raw.headers.items()) if name.startswith("x-history")})

HEIGHT = {"name": "height", "parameters": {"type": "object", "properties": {"lamp": {"type": "string"}}}}
tools = [{"type": "function", "function": HEIGHT}]
asked = [{"role": "user", "content": QUESTION}]
first = client.chat.completions.create(model=MODEL, messages=asked, tools=tools, stop=["END"]).choices[0]
call = first.message.tool_calls[0]
print("tool:", call.function.name, call.function.arguments, "|", first.finish_reason)
result = {"role": "tool", "tool_call_id": call.id, "content": "40 m"}
again = client.chat.completions.create(model=MODEL, messages=[*asked, first.message, result], tools=tools)
print("  with its result:", again.choices[0].message.content)


class Fuel(pydantic.BaseModel):
    """What is burnt."""

    name: str
    hours: int


parsed = client.chat.completions.parse(model=MODEL, messages=asked, response_format=Fuel).choices[0].message.parsed
print("schema:", repr(parsed), "| in a response:", client.responses.parse(
    model=MODEL, input=QUESTION, text_format=Fuel
).output_parsed)  # fmt: skip
count = client.responses.input_tokens.count(model=MODEL, input=QUESTION)
print("input tokens:", count.input_tokens)
stored = {"tools": tools, "metadata": {"conversation_id": "new"}}
for fields in ({"tools": [{"type": "web_search"}]}, stored, {"n": 2}, {"logprobs": True}, {"model": "gpt-5"}):
    try:
        client.chat.completions.create(**({"model": MODEL, "messages": talk[:1]} | fields))
    except openai.APIStatusError as error:
        print(f"refused: {error.status_code} {error.code}: {error.body['message']}")

first = client.responses.create(model=MODEL, input=QUESTION)
second = client.responses.create(model=MODEL, input="And who trims it?", previous_response_id=first.id)
print("response:", second.output_text, "| behind", second.previous_response_id)
with client.responses.stream(model=MODEL, input=QUESTION, store=False) as stream:
    events = [event.type for event in stream]
print("  streamed:", len(events), "events, from", events[0], "to", events[-1])
long = [{"role": one["role"], "content": one["content"] + " It was told at some length." * 20} for one in talk]
compacted = client.responses.compact(model=MODEL, input=long)
print("  compacted:", len(talk), "messages to", [item.type for item in compacted.output])
again = client.responses.create(model=MODEL, input=[*compacted.output, {"role": "user", "content": QUESTION}])
print("  and on from there:", again.output_text, "| summary sent:", again.rag_assistant["history"]["summary_sent"])
try:
    client.embeddings.create(model="rag-assistant-embeddings", input=[[1, 2]])
except openai.BadRequestError as error:
    print(f"refused: {error.status_code} {error.code}: {error.body['message']}")
print("embedding:", len(client.embeddings.create(model="rag-assistant-embeddings", input="lamp").data[0].embedding))
