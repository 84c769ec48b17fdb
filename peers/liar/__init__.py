"""A TLS 1.3 client written to be wrong on demand, from RFC 8446 and `cryptography` alone.

It shares nothing with the engine it judges: no import, no table, no code point. That is its worth.
"""

from .client import Client, Credential
from .fault import ServerFault
from .hello import Hello, Offer
from .observer import Alert, Ticket
from .record import Protection, record, records
from .transport import Transport, connect

__all__ = [
    "Alert",
    "Client",
    "Credential",
    "Hello",
    "Offer",
    "Protection",
    "ServerFault",
    "Ticket",
    "Transport",
    "connect",
    "record",
    "records",
]
