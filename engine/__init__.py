"""A TLS 1.3 server engine that leases its memory: bytes in, bytes out.

No socket, no file, no thread, no clock of its own. See `Engine`.
"""

from .engine import Engine
from .events import END, FAILED, WOULD_BLOCK, Event
from .refusals import Refusal, Refused

__all__ = ["END", "FAILED", "WOULD_BLOCK", "Engine", "Event", "Refusal", "Refused"]
