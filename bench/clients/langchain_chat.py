"""LangChain's ChatOpenAI: chat, stream, and the same over responses."""

import sys

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

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
try:
    chat.bind_tools([{"type": "function", "function": {"name": "f", "parameters": {}}}]).invoke(QUESTION)
except Exception as error:
    print("tools are refused:", type(error).__name__)
embeddings = OpenAIEmbeddings(
    base_url=sys.argv[1], api_key="none", model="rag-assistant-embeddings", check_embedding_ctx_length=False
)
print("embeddings:", [len(vector) for vector in embeddings.embed_documents(["lamp", "ferry"])])
