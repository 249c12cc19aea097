"""The API's requests and responses, as an OpenAPI document and a page, derived from the routes."""
