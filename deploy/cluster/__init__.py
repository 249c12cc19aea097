"""A whole cluster on this machine: a proxy, webs, workers, PostgreSQL and S3, on loopback and without root."""
