"""Language models: any OpenAI-compatible endpoint, or the small built-in one. The OpenAI SDK lives here only."""
