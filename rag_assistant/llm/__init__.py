"""Access to models: any OpenAI-compatible endpoint, or a model in a local file. The SDK is used only here."""
