"""The server's handshake: a table of state and message, one handler a message (RFC 8446 §4).

What is not in the table is refused. A handler is given a whole message whose length was judged; it
changes the area and returns None, or returns the refusal that ends the connection and has queued
nothing.
"""

import hmac
from collections.abc import Callable
from typing import Final, NamedTuple

from . import codepoints as c
from . import messages
from .client_authentication import ClientAuthentication
from .hello import Choice, ClientHello, HelloFault, Policy, Retry, choose, parse
from .identities import Identities, Identity
from .key_exchange import exchange
from .key_schedule import SUITES, CipherSuite, Pads, Transcript, mac, message_hash
from .layout import (
    ALPN,
    ALPN_LEN,
    AUTH_MODE,
    CLIENT_SECRET,
    ENTROPY_RANDOM,
    ENTROPY_SHARE,
    ESTABLISHED,
    F_ANSWERED,
    F_CCS_SENT,
    F_CLOSE_SENT,
    F_EARLY_DATA,
    F_RESUMED,
    F_RETRIED,
    FINISHED_KEY,
    FLAGS,
    GROUP,
    MAX_BODY,
    NAME,
    NAME_LEN,
    RUN,
    SESSION_ID,
    STATE,
    SUITE,
    WAIT_CERTIFICATE,
    WAIT_CERTIFICATE_VERIFY,
    WAIT_CLIENT_HELLO,
    WAIT_FINISHED,
    WAIT_SECOND_CLIENT_HELLO,
)
from .pool import Area
from .records import (
    forget_scratch,
    is_spent,
    made_no_progress,
    queue_plain,
    queue_sealed,
    send_key_update,
    set_read_secret,
    set_write_secret,
    update_read_key,
)
from .refusals import Refusal
from .resumption import Resumed, Resumption

_CHANGE_CIPHER_SPEC: Final = b"\x01"


class Rule(NamedTuple):
    """What one message may be in one state: its body's length, and who handles it."""

    low: int
    high: int
    refusal: Refusal  # of a body of another length
    ends_record: bool
    handler: Callable[[Area, memoryview], Refusal | None]


class Server:
    """What all connections of a server engine share, and the handlers of their messages."""

    def __init__(self, *, hardware_aes: bool, deterministic: bool, check_signature: bool) -> None:
        self.identities = Identities()
        self.resumption = Resumption()
        self.clients = ClientAuthentication()
        self.policy = Policy(c.SUITES_WITH_AES if hardware_aes else c.SUITES_WITHOUT_AES, c.GROUPS)
        self.deterministic = deterministic
        self.check_signature = check_signature
        hello = Rule(0, MAX_BODY, Refusal.SERVER_CLIENT_HELLO_LENGTH, True, self._on_client_hello)
        self._rules: dict[tuple[int, int], Rule] = {
            (WAIT_CLIENT_HELLO, c.CLIENT_HELLO): hello,
            (WAIT_SECOND_CLIENT_HELLO, c.CLIENT_HELLO): hello,
            (WAIT_CERTIFICATE, c.CERTIFICATE): Rule(
                0, MAX_BODY, Refusal.X509_CHAIN_TOO_LARGE, False, self.clients.on_certificate
            ),
            (WAIT_CERTIFICATE_VERIFY, c.CERTIFICATE_VERIFY): Rule(
                0, MAX_BODY, Refusal.DECODE_ERROR, False, self.clients.on_certificate_verify
            ),
            (ESTABLISHED, c.KEY_UPDATE): Rule(
                1, 1, Refusal.DECODE_ERROR, True, self._on_key_update
            ),
        }
        # A Finished is as long as the hash of its suite.
        self._finished: dict[int, Rule] = {
            suite.code: Rule(
                suite.hash.size, suite.hash.size, Refusal.DECODE_ERROR, True, self._on_finished
            )
            for suite in SUITES.values()
        }

    def rule(self, area: Area, message_type: int) -> Rule | None:
        """What may be done with a message of this type now; None when the state has none such."""
        words = area.words
        if message_type == c.FINISHED and words[STATE] == WAIT_FINISHED:
            return self._finished[words[SUITE]]
        return self._rules.get((words[STATE], message_type))

    # -- ClientHello ------------------------------------------------------------------------

    def _on_client_hello(self, area: Area, message: memoryview) -> Refusal | None:
        raw = bytes(message)
        words = area.words
        retry = None
        if words[STATE] == WAIT_SECOND_CLIENT_HELLO:
            block = area.bytes
            length = block[SESSION_ID]
            session_id = bytes(block[SESSION_ID + 1 : SESSION_ID + 1 + length])
            retry = Retry(words[GROUP], words[SUITE], session_id)
        try:
            hello = parse(raw[4:])
            choice = choose(hello, self.policy, retry)
        except HelloFault as fault:
            return fault.refusal
        if choice.share is None:
            return self._retry(area, raw, hello, choice)
        return self._answer(area, raw, hello, choice, choice.share)

    def _retry(self, area: Area, raw: bytes, hello: ClientHello, choice: Choice) -> Refusal | None:
        """Ask for a share of the first group in common (§4.1.4)."""
        words = area.words
        suite = SUITES[choice.suite]
        request = messages.hello_retry_request(hello.session_id, choice.suite, choice.group)
        transcript = suite.hash.new(message_hash(suite.hash, raw))
        transcript.update(request)
        area.transcript = transcript
        block = area.bytes
        block[SESSION_ID] = len(hello.session_id)
        block[SESSION_ID + 1 : SESSION_ID + 1 + len(hello.session_id)] = hello.session_id
        words[SUITE] = choice.suite
        words[GROUP] = choice.group
        words[FLAGS] |= F_RETRIED | (F_EARLY_DATA if hello.early_data else 0)
        words[STATE] = WAIT_SECOND_CLIENT_HELLO
        queue_plain(area, c.HANDSHAKE, request)
        self._queue_change_cipher_spec(area, hello)
        return None

    def _queue_change_cipher_spec(self, area: Area, hello: ClientHello) -> None:
        """Once, behind the first message, for a client in middlebox compatibility (§D.4)."""
        words = area.words
        if hello.session_id and not words[FLAGS] & F_CCS_SENT:
            queue_plain(area, c.CHANGE_CIPHER_SPEC, _CHANGE_CIPHER_SPEC)
            words[FLAGS] |= F_CCS_SENT

    def _answer(
        self, area: Area, raw: bytes, hello: ClientHello, choice: Choice, peer_share: bytes
    ) -> Refusal | None:
        """ServerHello to Finished in one flight, and the keys that follow from it."""
        block = area.bytes
        suite = SUITES[choice.suite]
        hash_suite = suite.hash
        identity, matched = self.identities.find(hello.server_name)
        resumed = self.resumption.accept(area, raw, hello, choice, identity)
        if isinstance(resumed, Refusal):
            return resumed
        shares = exchange(choice.group, block[ENTROPY_SHARE : ENTROPY_SHARE + 32], peer_share)
        if shares is None:
            return Refusal.KEY_SHARE
        public, shared = shares
        server_hello = messages.server_hello(
            block[ENTROPY_RANDOM : ENTROPY_RANDOM + 32],
            hello.session_id,
            choice.suite,
            choice.group,
            public,
            None if resumed is None else resumed.place,
        )
        transcript = area.transcript
        if transcript is None:
            transcript = hash_suite.new(raw + server_hello)
        else:
            transcript.update(raw + server_hello)
        hello_hash = transcript.digest()
        derived = hash_suite.no_psk if resumed is None else resumed.derived
        handshake = hash_suite.keyed(mac(derived, shared))
        client_secret = hash_suite.derive(handshake, b"c hs traffic", hello_hash)
        server_secret = hash_suite.derive(handshake, b"s hs traffic", hello_hash)
        server_pads = hash_suite.keyed(server_secret)
        master_secret = hash_suite.master(handshake)
        master = hash_suite.keyed(master_secret)
        asks = area.words[AUTH_MODE] and resumed is None
        request = self.clients.request if asks else b""
        proof = self._prove(transcript, choice, identity, matched, resumed, request)
        if proof is None:
            return Refusal.SERVER_SIGN_CHECK
        finished_key = mac(server_pads, hash_suite.finished)
        finished = messages.finished(hash_suite.finished_mac(finished_key, transcript.digest()))
        transcript.update(finished)
        flight_hash = transcript.digest()

        # Nothing can fail any more: queue, install, remember.
        self._record_choice(area, hello, choice)
        if resumed is not None:
            area.words[FLAGS] |= F_RESUMED
        self.resumption.remember(area, hello, identity, master_secret)
        queue_plain(area, c.HANDSHAKE, server_hello)
        self._queue_change_cipher_spec(area, hello)
        set_write_secret(area, suite, server_secret, server_pads)
        queue_sealed(area, c.HANDSHAKE, proof + finished)
        server_secret = hash_suite.derive(master, b"s ap traffic", flight_hash)
        set_write_secret(area, suite, server_secret, hash_suite.keyed(server_secret))
        self._expect_finished(area, suite, client_secret, master, flight_hash)
        area.transcript = transcript
        area.words[STATE] = WAIT_CERTIFICATE if request else WAIT_FINISHED
        return None

    def _prove(
        self,
        transcript: Transcript,
        choice: Choice,
        identity: Identity,
        matched: bool,
        resumed: Resumed | None,
        request: bytes,
    ) -> bytes | None:
        """EncryptedExtensions, and who the server is, unless a ticket says that already (§2.2)."""
        if resumed is not None:
            start = messages.encrypted_extensions(choice.alpn, False)
            transcript.update(start)
            return start
        start = messages.encrypted_extensions(choice.alpn, matched)
        start += request + identity.certificate_message
        transcript.update(start)
        verify = self._certificate_verify(identity, transcript.digest())
        if verify is None:
            return None
        transcript.update(verify)
        return start + verify

    def _certificate_verify(self, identity: Identity, transcript: bytes) -> bytes | None:
        """Sign; and check before anything is sent, so that a fault while signing cannot give the
        key away (a wrong signature and its message are enough to compute it)."""
        content = messages.signed_content(transcript)
        signature = identity.sign(content, self.deterministic)
        if self.check_signature and not identity.check(signature, content):
            return None
        return messages.certificate_verify(signature)

    def _record_choice(self, area: Area, hello: ClientHello, choice: Choice) -> None:
        words = area.words
        block = area.bytes
        words[SUITE] = choice.suite
        words[GROUP] = choice.group
        name = hello.server_name
        if name is not None:
            block[NAME : NAME + len(name)] = name
            words[NAME_LEN] = len(name)
        if choice.alpn is not None:
            block[ALPN : ALPN + len(choice.alpn)] = choice.alpn
            words[ALPN_LEN] = len(choice.alpn)
        flags = words[FLAGS] & ~F_EARLY_DATA | F_ANSWERED
        words[FLAGS] = flags | F_EARLY_DATA if hello.early_data else flags

    def _expect_finished(
        self, area: Area, suite: CipherSuite, secret: bytes, master: Pads, flight_hash: bytes
    ) -> None:
        """Read under the client's handshake secret; keep what its Finished is judged by and what
        follows it."""
        block = area.bytes
        hash_suite = suite.hash
        size = hash_suite.size
        pads = hash_suite.keyed(secret)
        set_read_secret(area, suite, secret, pads)
        block[FINISHED_KEY : FINISHED_KEY + size] = mac(pads, hash_suite.finished)
        block[CLIENT_SECRET : CLIENT_SECRET + size] = hash_suite.derive(
            master, b"c ap traffic", flight_hash
        )

    # -- Finished ---------------------------------------------------------------------------

    def _on_finished(self, area: Area, message: memoryview) -> Refusal | None:
        words = area.words
        block = area.bytes
        suite = SUITES[words[SUITE]]
        size = suite.hash.size
        transcript = _transcript(area)
        expected = suite.hash.finished_mac(
            block[FINISHED_KEY : FINISHED_KEY + size], transcript.digest()
        )
        if not hmac.compare_digest(expected, message[4:]):
            return Refusal.SERVER_FINISHED
        refusal = self.clients.on_finished(area)
        if refusal is not None:
            return refusal
        secret = block[CLIENT_SECRET : CLIENT_SECRET + size]
        set_read_secret(area, suite, secret, suite.hash.keyed(secret))
        words[FLAGS] &= ~F_EARLY_DATA
        words[RUN] = 0  # what came before a Finished and after it is not in a row
        words[STATE] = ESTABLISHED
        transcript.update(message)
        self.resumption.send(area, transcript)
        area.transcript = None
        forget_scratch(area)
        return None

    # -- KeyUpdate --------------------------------------------------------------------------

    def _on_key_update(self, area: Area, message: memoryview) -> Refusal | None:
        request = message[4]
        if request not in (c.UPDATE_NOT_REQUESTED, c.UPDATE_REQUESTED):
            return Refusal.SERVER_ILLEGAL_PARAMETER
        if made_no_progress(area):
            return Refusal.TOO_MANY_MESSAGES
        update_read_key(area)
        # After our close_notify nothing may follow, the answer neither (§6.1).
        if request == c.UPDATE_REQUESTED and not area.words[FLAGS] & F_CLOSE_SENT:
            if is_spent(area):
                return Refusal.TOO_MANY_MESSAGES
            send_key_update(area)
        return None


def _transcript(area: Area) -> Transcript:
    transcript = area.transcript
    assert transcript is not None
    return transcript
