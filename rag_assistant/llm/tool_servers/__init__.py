"""Other programs whose tools a model may call, over the Model Context Protocol."""
