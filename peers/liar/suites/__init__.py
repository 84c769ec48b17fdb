"""The conversations, a file a subject; importing them fills the suites."""

from . import (
    established,
    first_records,
    flights,
    hello_faults,
    hello_honest,
    retry,
    tickets_honest,
    tickets_keys,
    tickets_refused,
)
from .base import CLIENTS, HANDSHAKE, TICKETS

SUITES = {suite.name: suite for suite in (HANDSHAKE, TICKETS, CLIENTS)}
FILES = (
    established,
    first_records,
    flights,
    hello_faults,
    hello_honest,
    retry,
    tickets_honest,
    tickets_keys,
    tickets_refused,
)

__all__ = ["CLIENTS", "HANDSHAKE", "SUITES", "TICKETS"]
