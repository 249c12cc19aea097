"""How it is served: waitress, a signal that ends it in order, and a line in the log for each request."""
