"""OpenAI's protocol in front: chat completions, responses, embeddings and models, as views of the same answers."""
