"""A whole cluster on this machine: a proxy, webs, workers, PostgreSQL and files, on loopback and without root."""
