"""The model's side of the wire: any OpenAI-compatible endpoint, or the built-in model. The SDK lives here only."""
