"""The openai SDK in Python: chat, responses, embeddings."""

import sys

import openai

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

for fields in ({"tools": [{"type": "function", "function": {"name": "f"}}]}, {"model": "gpt-5"}):
    try:
        client.chat.completions.create(**({"model": MODEL, "messages": talk[:1]} | fields))
    except openai.APIStatusError as error:
        print(f"refused: {type(error).__name__} {error.status_code} {error.code}, param {error.param}")

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
print("embedding:", len(client.embeddings.create(model="rag-assistant-embeddings", input="lamp").data[0].embedding))
