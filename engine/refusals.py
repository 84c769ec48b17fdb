"""Every way in which the engine says no: one table of tag, alert, sentence, and where it comes.

A tag is stable and public: logs, tests and programs compare it. The alert is the one that RFC 8446
§6 names for the case; None means that nothing goes on the wire, because the transport is
gone, because the peer spoke last, or because the refusal is a configuration call's and no peer is
there. The sentence is for people. Where a refusal comes is the matrix of messages and states that
its row of the table ends with; what is told of refusals elsewhere (the contract, the oracles, what
inputs cover) follows from these rows.

Two kinds of answer are never mixed. A configuration or start call raises `Refused` and changes
nothing. A call that moves bytes never raises for what a peer sent: the connection fails, and
`failure` gives the `Refusal`.

No sentence holds a value that a peer sent, and none holds a secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from . import codepoints as c

# The states of a connection as RFC 8446 §A.2 names them; a retry leads back to its START.
START, RETRIED, CERT, CV, FIN, CONNECTED = STATES = (
    "START",
    "START, retried",
    "WAIT_CERT",
    "WAIT_CV",
    "WAIT_FINISHED",
    "CONNECTED",
)
FLIGHT: Final = (CERT, CV, FIN)
SEALED: Final = (*FLIGHT, CONNECTED)
# Once a record has opened no early data is skipped, and WAIT_CV comes after one.
SKIPPING: Final = (RETRIED, CERT, FIN)

# What can be refused in them, from a record's outside to its inside.
AT_HEADER, AT_PROTECTED, AT_EARLY = "record header", "protected record", "early data"
AT_CCS, AT_ALERT, AT_END = "change_cipher_spec", "Alert", "end of transport"
AT_HELLO, AT_CERTIFICATE, AT_VERIFY = "ClientHello", "Certificate", "CertificateVerify"
AT_FINISHED, AT_UPDATE, AT_OTHER = "Finished", "KeyUpdate", "another handshake message"
MESSAGES: Final = (
    *(AT_HEADER, AT_PROTECTED, AT_EARLY, AT_CCS, AT_ALERT, AT_END),
    *(AT_HELLO, AT_CERTIFICATE, AT_VERIFY, AT_FINISHED, AT_UPDATE, AT_OTHER),
)

Where = Mapping[str, tuple[str, ...]]
IN_A_HELLO: Final[Where] = {AT_HELLO: (START, RETRIED)}
IN_A_CERTIFICATE: Final[Where] = {AT_CERTIFICATE: (CERT,)}
# A call raises it as `Refused`, and it is never on the wire.
OF_A_CALL: Final[Where] = {}
# It ends a connection, and no peer can cause it.
NOWHERE: Final[Where] = {}


class Refusal(StrEnum):
    """A refusal is its tag (`refusal == "tls-pool"`), with an alert, a sentence and a code.

    The code is the place in this table, from 1 on, for the one number of a slot that remembers why
    a connection failed. It is not stable from one version to the next; the tag is. `where` says at
    which message in which states a peer earns it, and `when` in words; a refusal without `when` is
    told by its sentence.
    """

    code: int
    alert: int | None
    sentence: str
    where: Where
    when: str

    # The record layer and the messages of both roles.
    UNEXPECTED_MESSAGE = (
        "tls-unexpected-message",
        c.ALERT_UNEXPECTED_MESSAGE,
        "A message or record came that the state does not allow.",
        {
            AT_HEADER: STATES,
            AT_PROTECTED: SEALED,
            AT_CCS: (RETRIED, *FLIGHT),
            # In the clear an empty alert is the header's to refuse.
            AT_ALERT: SEALED,
            AT_HELLO: STATES,
            AT_CERTIFICATE: (START, RETRIED, CV, FIN, CONNECTED),
            AT_VERIFY: (START, RETRIED, CERT, FIN, CONNECTED),
            AT_FINISHED: STATES,
            AT_UPDATE: STATES,
            AT_OTHER: STATES,
        },
        "a message or record type that the state does not allow; a ClientHello, Finished or "
        "KeyUpdate that does not end its record (judged before the message is handled); what "
        "is left in the record or of a message behind one that changes keys; a "
        "change_cipher_spec in a wrong place or of another value, or protected; an empty "
        "handshake or alert record, plain or protected; a protected record of zeros alone; "
        "interleaved fragments",
    )
    RECORD_OVERFLOW = (
        "tls-record-overflow",
        c.ALERT_RECORD_OVERFLOW,
        "A record is longer than the protocol allows.",
        {AT_HEADER: STATES, AT_PROTECTED: SEALED},
        "a plaintext record over 2^14 bytes, a protected one over 2^14 + 256, an inner "
        "plaintext (content, type and padding) over 2^14 + 1",
    )
    BAD_RECORD_MAC = (
        "tls-bad-record-mac",
        c.ALERT_BAD_RECORD_MAC,
        "A protected record does not open.",
        {AT_HEADER: SEALED, AT_PROTECTED: SEALED},
        "a protected record that does not open, or of under 16 bytes",
    )
    DECODE_ERROR = (
        "tls-decode-error",
        c.ALERT_DECODE_ERROR,
        "A message does not parse.",
        {
            AT_ALERT: STATES,
            AT_CERTIFICATE: (CERT,),
            AT_VERIFY: (CV,),
            AT_FINISHED: (FIN,),
            AT_UPDATE: (CONNECTED,),
        },
        "a message other than a ClientHello that does not parse, a Finished or KeyUpdate of "
        "the wrong length included; an alert that is not two bytes",
    )
    PROTOCOL_VERSION = (
        "tls-protocol-version",
        c.ALERT_PROTOCOL_VERSION,
        "A record header has a version whose major byte is not 3.",
        {AT_HEADER: STATES},
        "a record header whose version's major byte is not 3 (stricter than the RFC, which "
        "ignores it)",
    )
    KEY_SHARE = (
        "tls-key-share",
        c.ALERT_ILLEGAL_PARAMETER,
        "The peer's key share is no valid public key.",
        IN_A_HELLO,
        "a share of the right length that is no valid point, or an all-zero X25519 result",
    )
    UNSUPPORTED_EXTENSION = (
        "tls-unsupported-extension",
        c.ALERT_UNSUPPORTED_EXTENSION,
        "The peer answered an extension that nobody asked for.",
        IN_A_CERTIFICATE,
        "an extension in a CertificateEntry that nobody asked for",
    )
    BAD_CERTIFICATE_VERIFY = (
        "tls-bad-certificate-verify",
        c.ALERT_DECRYPT_ERROR,
        "The signature does not prove that the peer holds its certificate's key.",
        {AT_VERIFY: (CV,)},
        "the client's signature is wrong",
    )
    TOO_MANY_MESSAGES = (
        "tls-too-many-messages",
        c.ALERT_UNEXPECTED_MESSAGE,
        "Too many messages in a row made no progress.",
        {
            AT_PROTECTED: (CONNECTED,),
            AT_EARLY: SKIPPING,
            AT_CCS: (RETRIED, *FLIGHT),
            AT_ALERT: STATES,
            AT_UPDATE: (CONNECTED,),
        },
        "33 in a row of KeyUpdates, empty application records, skipped ones too, "
        "user_canceled and dropped change_cipher_spec together, where non-empty application "
        "data in either direction and the Finished end the row; the last sequence number of "
        "either direction",
    )
    ALERT = (
        "tls-alert",
        None,
        "The peer ended the connection with an alert.",
        {AT_ALERT: STATES},
        "the peer's alert, whatever its level, all but close_notify and user_canceled; "
        "close_notify before the handshake is complete too, with `alert_received` 0",
    )
    PEER_CLOSED = (
        "tls-peer-closed",
        None,
        "The transport ended without a close_notify.",
        {AT_END: STATES},
        "the transport ended without close_notify",
    )
    INTERNAL_ERROR = (
        "tls-internal-error",
        c.ALERT_INTERNAL_ERROR,
        "The engine itself failed: this is a defect of the engine.",
        NOWHERE,
    )

    # The server reading a ClientHello and what follows it.
    SERVER_VERSION = (
        "tls-server-version",
        c.ALERT_PROTOCOL_VERSION,
        "The client does not offer TLS 1.3.",
        IN_A_HELLO,
        "no 0x0304 in supported_versions, no extensions at all, or legacy_version 0x0300",
    )
    SERVER_SUITE = (
        "tls-server-suite",
        c.ALERT_HANDSHAKE_FAILURE,
        "The client offers no cipher suite of the server's.",
        IN_A_HELLO,
        "no cipher suite in common",
    )
    SERVER_GROUP = (
        "tls-server-group",
        c.ALERT_HANDSHAKE_FAILURE,
        "The client offers no group of the server's.",
        IN_A_HELLO,
        "no group in common",
    )
    SERVER_SIGALG = (
        "tls-server-sigalg",
        c.ALERT_HANDSHAKE_FAILURE,
        "The client does not take the server's signature scheme.",
        IN_A_HELLO,
        "the client does not take the server's signature scheme",
    )
    SERVER_ALPN = (
        "tls-server-alpn",
        c.ALERT_NO_APPLICATION_PROTOCOL,
        "The client and the server have no application protocol in common.",
        IN_A_HELLO,
        "the client offers a list, `set_alpn` gave one, and they have nothing in common",
    )
    SERVER_CLIENT_HELLO_FORMAT = (
        "tls-server-client-hello-format",
        c.ALERT_DECODE_ERROR,
        "The ClientHello does not parse.",
        IN_A_HELLO,
        "a ClientHello that does not parse: an empty list of modes or of tickets, an empty "
        "ticket, a binder under 32 bytes, an empty host name and an empty ALPN name included",
    )
    SERVER_CLIENT_HELLO_LENGTH = (
        "tls-server-client-hello-length",
        c.ALERT_DECODE_ERROR,
        "The ClientHello is longer than the server reads.",
        IN_A_HELLO,
        "a ClientHello's body of more than 16,384 bytes",
    )
    SERVER_EXTENSION_REPEAT = (
        "tls-server-extension-repeat",
        c.ALERT_ILLEGAL_PARAMETER,
        "The ClientHello has an extension twice.",
        IN_A_HELLO,
        "an extension type twice",
    )
    SERVER_MISSING_EXTENSION = (
        "tls-server-missing-extension",
        c.ALERT_MISSING_EXTENSION,
        "The ClientHello lacks an extension that TLS 1.3 requires of it.",
        IN_A_HELLO,
        "supported_groups or key_share absent; signature_algorithms absent without "
        "pre_shared_key, or when no ticket was taken; pre_shared_key without "
        "psk_key_exchange_modes, whatever the ticket setting; a second ClientHello without "
        "key_share",
    )
    SERVER_ILLEGAL_PARAMETER = (
        "tls-server-illegal-parameter",
        c.ALERT_ILLEGAL_PARAMETER,
        "The client sent a value that the protocol does not allow there.",
        {AT_HELLO: (START, RETRIED), AT_CERTIFICATE: (CERT,), AT_UPDATE: (CONNECTED,)},
        "compression other than null; pre_shared_key not last; not as many binders as "
        "identities; two shares of one of our groups; a share of one of our groups outside "
        "supported_groups or of the wrong length; two host names; a certificate request "
        "context; a KeyUpdate value other than 0 and 1",
    )
    SERVER_RETRY_SHARE = (
        "tls-server-retry-share",
        c.ALERT_ILLEGAL_PARAMETER,
        "The second ClientHello is not what the HelloRetryRequest asked for.",
        {AT_HELLO: (RETRIED,)},
        "a second ClientHello whose session id differs, that dropped the suite, whose "
        "key_share is not exactly one of the group asked for, or that offers early data",
    )
    SERVER_EARLY_DATA_SIZE = (
        "tls-server-early-data-size",
        c.ALERT_UNEXPECTED_MESSAGE,
        "The client sent more early data than the server skips.",
        {AT_EARLY: SKIPPING},
        "more than 16,384 bytes of ciphertext skipped as early data, the records' lengths summed",
    )
    SERVER_FINISHED = (
        "tls-server-finished",
        c.ALERT_DECRYPT_ERROR,
        "The client's Finished does not verify.",
        {AT_FINISHED: (FIN,)},
        "the client's Finished does not verify",
    )
    SERVER_SIGN_CHECK = (
        "tls-server-sign-check",
        c.ALERT_INTERNAL_ERROR,
        "The server's own signature did not verify, so it was not sent.",
        NOWHERE,
        "the server's own signature did not verify, so it was not sent",
    )
    SERVER_BINDER = (
        "tls-server-binder",
        c.ALERT_DECRYPT_ERROR,
        "The binder of an acceptable ticket does not verify.",
        IN_A_HELLO,
        "a binder of another value or length on a ticket that every rule accepts",
    )
    SERVER_CLIENT_CERT_REQUIRED = (
        "tls-server-client-cert-required",
        c.ALERT_CERTIFICATE_REQUIRED,
        "The client has no certificate and one is required.",
        IN_A_CERTIFICATE,
        "no certificate where one is required",
    )
    SERVER_CLIENT_SIGALG = (
        "tls-server-client-sigalg",
        c.ALERT_ILLEGAL_PARAMETER,
        "The client signed with a scheme that the server did not list, or that is not its key's.",
        {AT_VERIFY: (CV,)},
        "a scheme that the request did not list, or that is not the key's",
    )
    SERVER_CLIENT_STORE_REPLACED = (
        "tls-server-client-store-replaced",
        c.ALERT_CERTIFICATE_UNKNOWN,
        "The client store changed while the client's certificate was being accepted.",
        {AT_FINISHED: (FIN,)},
        "the store changed between the verified chain and the Finished",
    )

    # The client's certificate chain.
    X509_UNKNOWN_ISSUER = (
        "x509-unknown-issuer",
        c.ALERT_UNKNOWN_CA,
        "No path leads from the certificate to a root of the store.",
        IN_A_CERTIFICATE,
    )
    X509_EXPIRED = (
        "x509-expired",
        c.ALERT_CERTIFICATE_EXPIRED,
        "A certificate of the path has expired.",
        IN_A_CERTIFICATE,
    )
    X509_NOT_YET_VALID = (
        "x509-not-yet-valid",
        c.ALERT_CERTIFICATE_EXPIRED,
        "A certificate of the path is not valid yet.",
        IN_A_CERTIFICATE,
    )
    X509_UNSUPPORTED_ALGORITHM = (
        "x509-unsupported-algorithm",
        c.ALERT_UNSUPPORTED_CERTIFICATE,
        "A certificate has a key or a signature of an algorithm that is not accepted.",
        IN_A_CERTIFICATE,
        "a P-521 or RSASSA-PSS-OID key, or a signature with SHA-1",
    )
    X509_KEY_USAGE = (
        "x509-key-usage",
        c.ALERT_UNSUPPORTED_CERTIFICATE,
        "A certificate's key usage does not allow what it is used for.",
        IN_A_CERTIFICATE,
        "key usage or extended key usage does not allow it",
    )
    X509_KEY_SIZE = (
        "x509-key-size",
        c.ALERT_UNSUPPORTED_CERTIFICATE,
        "A certificate has an RSA key of a size that is not accepted.",
        IN_A_CERTIFICATE,
        "RSA outside 2048 to 4096 bits",
    )
    X509_CRITICAL_EXTENSION = (
        "x509-critical-extension",
        c.ALERT_UNSUPPORTED_CERTIFICATE,
        "A certificate has a critical extension that is not understood.",
        IN_A_CERTIFICATE,
    )
    X509_BAD_SIGNATURE = (
        "x509-bad-signature",
        c.ALERT_BAD_CERTIFICATE,
        "A signature of the path does not verify.",
        IN_A_CERTIFICATE,
    )
    X509_NOT_CA = (
        "x509-not-ca",
        c.ALERT_BAD_CERTIFICATE,
        "A certificate that issued another is not a certification authority's.",
        IN_A_CERTIFICATE,
    )
    X509_NAME_CONSTRAINT = (
        "x509-name-constraint",
        c.ALERT_BAD_CERTIFICATE,
        "A name is outside the constraints of an authority of the path.",
        IN_A_CERTIFICATE,
    )
    X509_PATH_TOO_LONG = (
        "x509-path-too-long",
        c.ALERT_BAD_CERTIFICATE,
        "The path has more intermediates than are allowed.",
        IN_A_CERTIFICATE,
    )
    X509_CHAIN_TOO_LARGE = (
        "x509-chain-too-large",
        c.ALERT_BAD_CERTIFICATE,
        "The chain is larger, or takes more work, than is allowed.",
        IN_A_CERTIFICATE,
    )
    X509_DECODE = (
        "x509-decode",
        c.ALERT_BAD_CERTIFICATE,
        "A certificate does not parse.",
        IN_A_CERTIFICATE,
    )

    # Configuration and start calls.
    ROLE = (
        "tls-role",
        None,
        "The call belongs to the other role.",
        OF_A_CALL,
        "a call of the other role",
    )
    POOL = (
        "tls-pool",
        None,
        "Every area is in use, so no connection can start.",
        OF_A_CALL,
        "no area is free when a connection is to start",
    )
    NO_ENTROPY = (
        "tls-no-entropy",
        None,
        "The engine was not seeded.",
        OF_A_CALL,
        "the engine was not seeded",
    )
    SERVER_CHAIN = (
        "tls-server-chain",
        None,
        "The certificate chain is missing, does not decode, or is too large.",
        OF_A_CALL,
    )
    SERVER_NAMES = (
        "tls-server-names",
        None,
        "A name is not a host name that the server can match, or the names are too long.",
        OF_A_CALL,
    )
    SERVER_ALPN_LIST = (
        "tls-server-alpn-list",
        None,
        "The list of application protocols has a bad name or is too long.",
        OF_A_CALL,
    )
    SERVER_KEY_TYPE = (
        "tls-server-key-type",
        None,
        "The key is not an ECDSA P-256 key.",
        OF_A_CALL,
    )
    SERVER_KEY_FORMAT = (
        "tls-server-key-format",
        None,
        "The key is not one unencrypted PKCS#8 or SEC 1 key in PEM.",
        OF_A_CALL,
    )
    SERVER_KEY_MISMATCH = (
        "tls-server-key-mismatch",
        None,
        "The key is not the leaf certificate's.",
        OF_A_CALL,
    )
    SERVER_CERT_EXPIRED = (
        "tls-server-cert-expired",
        None,
        "The leaf certificate has expired.",
        OF_A_CALL,
    )
    SERVER_IDENTITIES_FULL = (
        "tls-server-identities-full",
        None,
        "The engine already has as many identities as it holds.",
        OF_A_CALL,
    )
    SERVER_TICKET_CONFIG = (
        "tls-server-ticket-config",
        None,
        "The number of tickets or their lifetime is out of range.",
        OF_A_CALL,
    )
    SERVER_TICKET_KEY = (
        "tls-server-ticket-key",
        None,
        "The ticket keys are not 1 to 4 different keys of 32 bytes.",
        OF_A_CALL,
    )
    SERVER_CLIENT_STORE = (
        "tls-server-client-store",
        None,
        "The client store is missing, has a bad block, or is too large.",
        OF_A_CALL,
    )

    # The defaults serve a look-up by tag, `Refusal("tls-pool")`, for which this is not called.
    def __new__(
        cls,
        tag: str,
        alert: int | None = None,
        sentence: str = "",
        where: Where = NOWHERE,
        when: str = "",
    ) -> Refusal:
        member = str.__new__(cls, tag)
        member._value_ = tag
        member.alert = alert
        member.sentence = sentence
        member.where = where
        member.when = when or sentence[:1].lower() + sentence[1:-1]
        member.code = len(cls.__members__) + 1
        return member

    @property
    def tag(self) -> str:
        """The public name, which is the refusal's value."""
        return str(self.value)

    @property
    def of_a_call(self) -> bool:
        """Whether a call raises it and no connection ends with it."""
        return not self.where and self.alert is None


BY_CODE: tuple[Refusal | None, ...] = (None, *Refusal)
"""The refusal of each code; code 0 is no refusal."""


class Refused(Exception):
    """A configuration or start call was refused and changed nothing. `refusal` says why."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal

    def __str__(self) -> str:
        return f"{self.refusal.tag}: {self.refusal.sentence}"
