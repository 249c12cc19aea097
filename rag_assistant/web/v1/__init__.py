"""OpenAI's protocol: chat completions, responses, embeddings and models, as views of the same answers."""
