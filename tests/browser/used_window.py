"""A window that goes from test to test and is emptied in between.

A new window costs as much as most tests: it has nothing in its cache and begins a process of its own. Here the servers
all have one address, so that the scripts are in the cache, and one page that stays keeps the process that draws.
"""

from playwright.sync_api import Browser, BrowserContext


class UsedWindow:
    """A context of the browser at one address."""

    def __init__(self, browser: Browser, url: str) -> None:
        self._url = url
        self.context: BrowserContext = browser.new_context(
            base_url=url, reduced_motion="reduce", service_workers="block"
        )
        self._keeper = self.context.new_page()
        self._devtools = self.context.new_cdp_session(self._keeper)

    def empty(self) -> None:
        """Forget what a test left behind: pages, routes, cookies, storage, permissions, a network that is off."""
        for page in self.context.pages:
            if page is not self._keeper:
                page.close()
        self.context.unroute_all(behavior="ignoreErrors")
        self.context.set_offline(False)
        self.context.clear_permissions()
        self._devtools.send(
            "Storage.clearDataForOrigin", {"origin": self._url, "storageTypes": "cookies,local_storage"}
        )

    def close(self) -> None:
        """Close the window."""
        self.context.close()
