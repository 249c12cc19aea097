"""The application of the tests of the web, with a scripted model."""

from tests.web.conftest import app, client, environment, services, stand_ins

__all__ = ["app", "client", "environment", "services", "stand_ins"]
