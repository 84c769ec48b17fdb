"""The conversations, a file a subject; importing them fills the suites."""

from . import (
    clients_chain,
    clients_flight,
    clients_honest,
    established,
    first_records,
    flights,
    hello_faults,
    hello_honest,
    retry,
    settings,
    tickets_honest,
    tickets_keys,
    tickets_refused,
)
from .base import CLIENTS, HANDSHAKE, TICKETS

SUITES = {suite.name: suite for suite in (HANDSHAKE, TICKETS, CLIENTS)}
FILES = (
    clients_chain,
    clients_flight,
    clients_honest,
    established,
    first_records,
    flights,
    hello_faults,
    hello_honest,
    retry,
    settings,
    tickets_honest,
    tickets_keys,
    tickets_refused,
)

__all__ = ["CLIENTS", "HANDSHAKE", "SUITES", "TICKETS"]
