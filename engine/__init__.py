"""A TLS 1.3 server engine that leases its memory: bytes in, bytes out.

    from residue_tls import Engine

    tls = Engine.server(slots=1000, areas=64)

No socket, no file, no thread, no clock of its own. `Engine` has every call. A setting or a start
that is refused raises `Refused`, whose `Refusal` has a stable tag; `Engine.event` answers an
`Event`, and `Engine.recv` a count or `END`, `WOULD_BLOCK` or `FAILED`. `OFF`, `OPTIONAL` and
`REQUIRED` are for `Engine.client_auth_mode`; `SUITE_NAMES` and `GROUP_NAMES` name the code points
that `Engine.suite` and `Engine.group` answer.
"""

from .client_certificate import OFF, OPTIONAL, REQUIRED
from .codepoints import GROUP_NAMES, SUITE_NAMES
from .engine import Engine
from .events import END, FAILED, WOULD_BLOCK, Event
from .refusals import Refusal, Refused

__version__ = "0.1.0"
__all__ = [
    "END",
    "FAILED",
    "GROUP_NAMES",
    "OFF",
    "OPTIONAL",
    "REQUIRED",
    "SUITE_NAMES",
    "WOULD_BLOCK",
    "Engine",
    "Event",
    "Refusal",
    "Refused",
    "__version__",
]
