"""What the API takes and gives, as an OpenAPI document and a page, read from the routes and their bodies."""
