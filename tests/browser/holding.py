"""A request of the page that is held back until the test lets it go."""

from playwright.sync_api import Page, Route


class Held:
    """The next request to an address (a glob), from now on.

    The page may show that it has asked before the request has come as far as here, so `route` waits for it.
    """

    def __init__(self, page: Page, address: str) -> None:
        self._page = page
        self._routes: list[Route] = []
        page.route(address, lambda route: self._routes.append(route), times=1)

    @property
    def route(self) -> Route:
        """The request, to be answered, aborted or let go; TimeoutError when none came within ten seconds."""
        for _ in range(200):
            if self._routes:
                return self._routes[0]
            self._page.wait_for_timeout(50)  # Time in which the driver's events are heard.
        raise TimeoutError("No request was held back.")
