"""Every way in which the engine says no: one table of tag, alert and sentence.

A tag is stable and public: logs, tests and programs compare it. The alert is the one that RFC 8446
section 6 names for the case; None means that nothing goes on the wire, because the transport is
gone, because the peer spoke last, or because the refusal is a configuration call's and no peer is
there. The sentence is for people.

Two kinds of answer are never mixed. A configuration or start call raises `Refused` and changes
nothing. A call that moves bytes never raises for what a peer sent: the connection fails, and
`failure` gives the `Refusal`.

No sentence holds a value that a peer sent, and none holds a secret.
"""

from __future__ import annotations

from enum import StrEnum

from . import codepoints as c


class Refusal(StrEnum):
    """A refusal is its tag (`refusal == "tls-pool"`), with an alert, a sentence and a code.

    The code is the place in this table, from 1 on, for the one number of a slot that remembers why
    a connection failed. It is not stable from one version to the next; the tag is.
    """

    code: int
    alert: int | None
    sentence: str

    # The record layer and the messages of both roles.
    UNEXPECTED_MESSAGE = (
        "tls-unexpected-message",
        c.ALERT_UNEXPECTED_MESSAGE,
        "A message or record came that the state does not allow.",
    )
    RECORD_OVERFLOW = (
        "tls-record-overflow",
        c.ALERT_RECORD_OVERFLOW,
        "A record is longer than the protocol allows.",
    )
    BAD_RECORD_MAC = (
        "tls-bad-record-mac",
        c.ALERT_BAD_RECORD_MAC,
        "A protected record does not open.",
    )
    DECODE_ERROR = (
        "tls-decode-error",
        c.ALERT_DECODE_ERROR,
        "A message does not parse.",
    )
    PROTOCOL_VERSION = (
        "tls-protocol-version",
        c.ALERT_PROTOCOL_VERSION,
        "A record header has a version whose major byte is not 3.",
    )
    KEY_SHARE = (
        "tls-key-share",
        c.ALERT_ILLEGAL_PARAMETER,
        "The peer's key share is no valid public key.",
    )
    UNSUPPORTED_EXTENSION = (
        "tls-unsupported-extension",
        c.ALERT_UNSUPPORTED_EXTENSION,
        "The peer answered an extension that nobody asked for.",
    )
    BAD_CERTIFICATE_VERIFY = (
        "tls-bad-certificate-verify",
        c.ALERT_DECRYPT_ERROR,
        "The signature does not prove that the peer holds its certificate's key.",
    )
    TOO_MANY_MESSAGES = (
        "tls-too-many-messages",
        c.ALERT_UNEXPECTED_MESSAGE,
        "Too many messages in a row made no progress.",
    )
    ALERT = (
        "tls-alert",
        None,
        "The peer ended the connection with an alert.",
    )
    PEER_CLOSED = (
        "tls-peer-closed",
        None,
        "The transport ended without a close_notify.",
    )
    INTERNAL_ERROR = (
        "tls-internal-error",
        c.ALERT_INTERNAL_ERROR,
        "The engine itself failed: this is a defect of the engine.",
    )

    # The server reading a ClientHello and what follows it.
    SERVER_VERSION = (
        "tls-server-version",
        c.ALERT_PROTOCOL_VERSION,
        "The client does not offer TLS 1.3.",
    )
    SERVER_SUITE = (
        "tls-server-suite",
        c.ALERT_HANDSHAKE_FAILURE,
        "The client offers no cipher suite of the server's.",
    )
    SERVER_GROUP = (
        "tls-server-group",
        c.ALERT_HANDSHAKE_FAILURE,
        "The client offers no group of the server's.",
    )
    SERVER_SIGALG = (
        "tls-server-sigalg",
        c.ALERT_HANDSHAKE_FAILURE,
        "The client does not take the server's signature scheme.",
    )
    SERVER_ALPN = (
        "tls-server-alpn",
        c.ALERT_NO_APPLICATION_PROTOCOL,
        "The client and the server have no application protocol in common.",
    )
    SERVER_CLIENT_HELLO_FORMAT = (
        "tls-server-client-hello-format",
        c.ALERT_DECODE_ERROR,
        "The ClientHello does not parse.",
    )
    SERVER_CLIENT_HELLO_LENGTH = (
        "tls-server-client-hello-length",
        c.ALERT_DECODE_ERROR,
        "The ClientHello is longer than the server reads.",
    )
    SERVER_EXTENSION_REPEAT = (
        "tls-server-extension-repeat",
        c.ALERT_ILLEGAL_PARAMETER,
        "The ClientHello has an extension twice.",
    )
    SERVER_MISSING_EXTENSION = (
        "tls-server-missing-extension",
        c.ALERT_MISSING_EXTENSION,
        "The ClientHello lacks an extension that TLS 1.3 requires of it.",
    )
    SERVER_ILLEGAL_PARAMETER = (
        "tls-server-illegal-parameter",
        c.ALERT_ILLEGAL_PARAMETER,
        "The client sent a value that the protocol does not allow there.",
    )
    SERVER_RETRY_SHARE = (
        "tls-server-retry-share",
        c.ALERT_ILLEGAL_PARAMETER,
        "The second ClientHello is not what the HelloRetryRequest asked for.",
    )
    SERVER_EARLY_DATA_SIZE = (
        "tls-server-early-data-size",
        c.ALERT_UNEXPECTED_MESSAGE,
        "The client sent more early data than the server skips.",
    )
    SERVER_FINISHED = (
        "tls-server-finished",
        c.ALERT_DECRYPT_ERROR,
        "The client's Finished does not verify.",
    )
    SERVER_SIGN_CHECK = (
        "tls-server-sign-check",
        c.ALERT_INTERNAL_ERROR,
        "The server's own signature did not verify, so it was not sent.",
    )
    SERVER_BINDER = (
        "tls-server-binder",
        c.ALERT_DECRYPT_ERROR,
        "The binder of an acceptable ticket does not verify.",
    )
    SERVER_CLIENT_CERT_REQUIRED = (
        "tls-server-client-cert-required",
        c.ALERT_CERTIFICATE_REQUIRED,
        "The client has no certificate and one is required.",
    )
    SERVER_CLIENT_SIGALG = (
        "tls-server-client-sigalg",
        c.ALERT_ILLEGAL_PARAMETER,
        "The client signed with a scheme that the server did not list, or that is not its key's.",
    )
    SERVER_CLIENT_STORE_REPLACED = (
        "tls-server-client-store-replaced",
        c.ALERT_CERTIFICATE_UNKNOWN,
        "The client store changed while the client's certificate was being accepted.",
    )

    # The client's certificate chain.
    X509_UNKNOWN_ISSUER = (
        "x509-unknown-issuer",
        c.ALERT_UNKNOWN_CA,
        "No path leads from the certificate to a root of the store.",
    )
    X509_EXPIRED = (
        "x509-expired",
        c.ALERT_CERTIFICATE_EXPIRED,
        "A certificate of the path has expired.",
    )
    X509_NOT_YET_VALID = (
        "x509-not-yet-valid",
        c.ALERT_CERTIFICATE_EXPIRED,
        "A certificate of the path is not valid yet.",
    )
    X509_UNSUPPORTED_ALGORITHM = (
        "x509-unsupported-algorithm",
        c.ALERT_UNSUPPORTED_CERTIFICATE,
        "A certificate has a key or a signature of an algorithm that is not accepted.",
    )
    X509_KEY_USAGE = (
        "x509-key-usage",
        c.ALERT_UNSUPPORTED_CERTIFICATE,
        "A certificate's key usage does not allow what it is used for.",
    )
    X509_KEY_SIZE = (
        "x509-key-size",
        c.ALERT_UNSUPPORTED_CERTIFICATE,
        "A certificate has an RSA key of a size that is not accepted.",
    )
    X509_CRITICAL_EXTENSION = (
        "x509-critical-extension",
        c.ALERT_UNSUPPORTED_CERTIFICATE,
        "A certificate has a critical extension that is not understood.",
    )
    X509_BAD_SIGNATURE = (
        "x509-bad-signature",
        c.ALERT_BAD_CERTIFICATE,
        "A signature of the path does not verify.",
    )
    X509_NOT_CA = (
        "x509-not-ca",
        c.ALERT_BAD_CERTIFICATE,
        "A certificate that issued another is not a certification authority's.",
    )
    X509_NAME_CONSTRAINT = (
        "x509-name-constraint",
        c.ALERT_BAD_CERTIFICATE,
        "A name is outside the constraints of an authority of the path.",
    )
    X509_PATH_TOO_LONG = (
        "x509-path-too-long",
        c.ALERT_BAD_CERTIFICATE,
        "The path has more intermediates than are allowed.",
    )
    X509_CHAIN_TOO_LARGE = (
        "x509-chain-too-large",
        c.ALERT_BAD_CERTIFICATE,
        "The chain is larger, or takes more work, than is allowed.",
    )
    X509_DECODE = (
        "x509-decode",
        c.ALERT_BAD_CERTIFICATE,
        "A certificate does not parse.",
    )

    # Configuration and start calls: raised as `Refused`, never on the wire.
    ROLE = (
        "tls-role",
        None,
        "The call belongs to the other role.",
    )
    POOL = (
        "tls-pool",
        None,
        "Every area is in use, so no connection can start.",
    )
    NO_ENTROPY = (
        "tls-no-entropy",
        None,
        "The engine was not seeded.",
    )
    SERVER_CHAIN = (
        "tls-server-chain",
        None,
        "The certificate chain is missing, does not decode, or is too large.",
    )
    SERVER_NAMES = (
        "tls-server-names",
        None,
        "A name is not a host name that the server can match, or the names are too long.",
    )
    SERVER_ALPN_LIST = (
        "tls-server-alpn-list",
        None,
        "The list of application protocols has a bad name or is too long.",
    )
    SERVER_KEY_TYPE = (
        "tls-server-key-type",
        None,
        "The key is not an ECDSA P-256 key.",
    )
    SERVER_KEY_FORMAT = (
        "tls-server-key-format",
        None,
        "The key is not one unencrypted PKCS#8 or SEC 1 key in PEM.",
    )
    SERVER_KEY_MISMATCH = (
        "tls-server-key-mismatch",
        None,
        "The key is not the leaf certificate's.",
    )
    SERVER_CERT_EXPIRED = (
        "tls-server-cert-expired",
        None,
        "The leaf certificate has expired.",
    )
    SERVER_IDENTITIES_FULL = (
        "tls-server-identities-full",
        None,
        "The engine already has as many identities as it holds.",
    )
    SERVER_TICKET_CONFIG = (
        "tls-server-ticket-config",
        None,
        "The number of tickets or their lifetime is out of range.",
    )
    SERVER_TICKET_KEY = (
        "tls-server-ticket-key",
        None,
        "The ticket keys are not 1 to 4 different keys of 32 bytes.",
    )
    SERVER_CLIENT_STORE = (
        "tls-server-client-store",
        None,
        "The client store is missing, has a bad block, or is too large.",
    )

    # The defaults serve a look-up by tag, `Refusal("tls-pool")`, for which this is not called.
    def __new__(cls, tag: str, alert: int | None = None, sentence: str = "") -> Refusal:
        member = str.__new__(cls, tag)
        member._value_ = tag
        member.alert = alert
        member.sentence = sentence
        member.code = len(cls.__members__) + 1
        return member

    @property
    def tag(self) -> str:
        """The public name, which is the refusal's value."""
        return str(self.value)


BY_CODE: tuple[Refusal | None, ...] = (None, *Refusal)
"""The refusal of each code; code 0 is no refusal."""


class Refused(Exception):
    """A configuration or start call was refused and changed nothing. `refusal` says why."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal

    def __str__(self) -> str:
        return f"{self.refusal.tag}: {self.refusal.sentence}"
