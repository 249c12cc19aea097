"""Blocks the network: a connection to any other machine is an error in the process that makes it."""

import ipaddress
import sys


class ForeignConnection(AssertionError):
    """Something tried to connect to another machine."""


def loopback_only() -> None:
    """Refuse connections to other machines from this process, and from those forked from it."""
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event != "socket.connect" or not isinstance(arguments[1], tuple):
        return
    host = str(arguments[1][0])
    if host != "localhost" and not ipaddress.ip_address(host.partition("%")[0]).is_loopback:
        raise ForeignConnection(f"{arguments[1]} is not on this machine")
