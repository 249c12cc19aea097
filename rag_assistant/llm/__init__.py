"""The model's side of the wire: any OpenAI-compatible endpoint, or a model of a local file. The SDK lives here only."""
