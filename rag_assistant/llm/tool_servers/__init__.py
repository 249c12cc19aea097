"""External tools for the model, over the Model Context Protocol."""
