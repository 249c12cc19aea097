"""Which addresses of the network are everybody's, so that a page there is no page of ours or of our neighbours. Pure.

What reaches an IPv4 address by way of an IPv6 one (mapped, 6to4, Teredo, NAT64) is refused as a whole: where it leads
is decided by a gateway, and no public page needs it.
"""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

# Public by their number, and yet not a page of the public net, each with what it is.
NOT_PUBLIC: tuple[IPv4Network | IPv6Network, ...] = tuple(
    map(
        ip_network,
        (
            # What older versions of Python do not know to be special.
            "192.0.0.0/24",  # the protocol's own (RFC 6890)
            "2001::/23",  # the protocol's own, Teredo among it (RFC 2928)
            "3fff::/20",  # examples (RFC 9637)
            "192.88.99.0/24",  # 6to4 relays (RFC 7526)
            "168.63.129.16/32",  # what Azure tells its machines
            "::/96",  # IPv4 in IPv6, unmarked (RFC 4291)
            "::ffff:0:0/96",  # IPv4 in IPv6 (RFC 4291)
            "::ffff:0:0:0/96",  # IPv4, translated (RFC 2765)
            "64:ff9b::/96",  # NAT64 (RFC 6052)
            "64:ff9b:1::/48",  # NAT64 of one site (RFC 8215)
            "2002::/16",  # 6to4 (RFC 3056)
            "5f00::/16",  # segment routing (RFC 9602)
            "fec0::/10",  # site-local (RFC 3879)
        ),
    )
)


def is_public(address: str) -> bool:
    """Tell whether a numeric address is one of the public net; what is no address is not."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    if not ip.is_global or ip.is_multicast or ip.is_reserved or ip.is_unspecified:
        return False
    return not any(ip in network for network in NOT_PUBLIC)
