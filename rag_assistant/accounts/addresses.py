"""Whether an address is this machine's, or is in a list of networks. Pure."""

from functools import lru_cache
from ipaddress import ip_address, ip_network


def is_loopback(host: str) -> bool:
    """Return whether an address is reachable from this machine only."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


@lru_cache
def is_within(address: str, networks: tuple[str, ...]) -> bool:
    """Return whether an address is in a list of addresses and networks such as ``10.0.0.0/24``."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if parsed.version == 6 and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped  # How a server that listens on :: sees its IPv4 clients.
    return any(parsed in ip_network(network, strict=False) for network in networks)
