"""The application of the tests of the web, with a scripted model."""

from tests.web.conftest import app, client, engine, environment, services, stand_ins

__all__ = ["app", "client", "engine", "environment", "services", "stand_ins"]
