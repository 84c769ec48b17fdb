"""Harness keyed: a list of messages, sealed by a harness that knows the keys.

What lies behind the encryption is reached through the real record layer: a client's Certificate,
CertificateVerify and Finished, KeyUpdates, application data, alerts, in any order and any cutting.
The input's format is in `harnesses.formats.keyed`; it is compiled to the calls of the server
harness and judged as those are, and besides:

- what the program receives is what the client sent, in order, and all of it unless it failed;
- nothing is established without an honest Finished, and no client is verified without an honest
  CertificateVerify: only the harness can make them, the fuzzer cannot.
"""

from __future__ import annotations

from .formats.keyed import IDENTITIES, TRUSTED, Flight, decode
from .oracles import Broken, looked
from .play import Run, judge
from .server import UNKNOWN

MAX_LEN = 4_096

_BELIEVED = frozenset(identity.der for identity in IDENTITIES[:TRUSTED])


def run(data: bytes, thorough: bool = False) -> str:
    """Runs one input; the outcome, or Broken. `thorough` leaves no oracle to a sample."""
    flight = decode(data)
    if flight is None:
        return UNKNOWN
    played = judge(flight.script, data, thorough)
    check_delivery(played, flight)
    check_proof(played, flight)
    return played.outcome


def check_delivery(played: Run, flight: Flight) -> None:
    """`delivered`: what is received is what was sent, and all of it unless something failed."""
    looked("delivered")
    if not flight.plaintext.startswith(played.plaintext):
        raise Broken("delivered", "something is received that was not sent, or in another order")
    whole = played.outcome.startswith(("established", "closed"))
    if whole and played.plaintext != flight.plaintext:
        raise Broken("delivered", "something that was sent is missing, and nothing failed")


def check_proof(played: Run, flight: Flight) -> None:
    """`proof`: established by an honest Finished, verified by an honest CertificateVerify."""
    looked("proof")
    if played.outcome.startswith(("established", "closed")) and not flight.finished:
        raise Broken("proof", "established without the client's Finished")
    if played.peer is not None and played.peer not in flight.proven & _BELIEVED:
        raise Broken("proof", "a client is verified that did not prove it, or is not believed")
