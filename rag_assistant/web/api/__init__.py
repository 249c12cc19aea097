"""The JSON API and its event streams: requests become calls, records become JSON."""
