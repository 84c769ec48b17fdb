"""The conversations, a file a subject; importing them fills the suites."""

from . import established, first_records, flights, hello_faults, hello_honest, retry
from .base import CLIENTS, HANDSHAKE, TICKETS

SUITES = {suite.name: suite for suite in (HANDSHAKE, TICKETS, CLIENTS)}
FILES = (established, first_records, flights, hello_faults, hello_honest, retry)

__all__ = ["CLIENTS", "HANDSHAKE", "SUITES", "TICKETS"]
