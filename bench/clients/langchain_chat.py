"""LangChain's ChatOpenAI: chat, stream, and the same over responses."""

import sys

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel

QUESTION = "What does the lamp of the lighthouse burn?"
fields = {"base_url": sys.argv[1], "api_key": "none", "model": "rag-assistant", "max_retries": 0}
chat = ChatOpenAI(**fields, stream_usage=True)
answer = chat.invoke([SystemMessage("Be brief."), HumanMessage("Hello"), AIMessage("Hello."), HumanMessage(QUESTION)])
print("invoke:", answer.content, "|", answer.usage_metadata["total_tokens"], "tokens")
chunks = list(chat.stream(QUESTION))
print("stream:", "".join(chunk.content for chunk in chunks), f"| {len(chunks)} chunks")
over_responses = ChatOpenAI(**fields, use_responses_api=True)
answer = over_responses.invoke(QUESTION)
print("responses:", answer.text, "| cites:", [one.get("title") for one in answer.content[0]["annotations"]])
whole = None
for chunk in over_responses.stream(QUESTION):
    whole = chunk if whole is None else whole + chunk
print("  streamed:", whole.text)


def height(lamp: str) -> str:
    """Return how high a lamp is."""
    return f"{lamp}: 40 m"


class Fuel(BaseModel):
    """What is burnt."""

    name: str
    hours: int


for name, model in (("tool", chat), ("tool over responses", over_responses)):
    with_tools = model.bind_tools([height])
    called = with_tools.invoke(QUESTION)
    call = called.tool_calls[0]
    result = ToolMessage(height(**call["args"]), tool_call_id=call["id"])
    print(f"{name}:", call["name"], call["args"], "|", with_tools.invoke([HumanMessage(QUESTION), called, result]).text)
    print("  schema:", repr(model.with_structured_output(Fuel).invoke(QUESTION)))
# Otherwise it sends tokens, for which it downloads a table first.
embeddings = OpenAIEmbeddings(
    base_url=sys.argv[1], api_key="none", model="rag-assistant-embeddings", check_embedding_ctx_length=False
)
print("embeddings:", [len(vector) for vector in embeddings.embed_documents(["lamp", "ferry"])])
