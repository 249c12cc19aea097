"""Faults: real servers are killed, starved and lied to, and what was lost or doubled is counted."""
