"""The code points of RFC 8446 and its registries, written down a second time."""

from __future__ import annotations

from typing import NamedTuple

# Record types (§5.1).
CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, APPLICATION_DATA = 20, 21, 22, 23

# Handshake types (§4).
CLIENT_HELLO, SERVER_HELLO, NEW_SESSION_TICKET, END_OF_EARLY_DATA = 1, 2, 4, 5
ENCRYPTED_EXTENSIONS, CERTIFICATE, CERTIFICATE_REQUEST, CERTIFICATE_VERIFY = 8, 11, 13, 15
FINISHED, KEY_UPDATE, MESSAGE_HASH = 20, 24, 254

# Extensions (§4.2).
SERVER_NAME, MAX_FRAGMENT_LENGTH, STATUS_REQUEST, SUPPORTED_GROUPS = 0, 1, 5, 10
SIGNATURE_ALGORITHMS, ALPN, SIGNED_CERTIFICATE_TIMESTAMP, PADDING = 13, 16, 18, 21
RECORD_SIZE_LIMIT, PRE_SHARED_KEY, EARLY_DATA, SUPPORTED_VERSIONS = 28, 41, 42, 43
COOKIE, PSK_KEY_EXCHANGE_MODES, CERTIFICATE_AUTHORITIES, OID_FILTERS = 44, 45, 47, 48
POST_HANDSHAKE_AUTH, SIGNATURE_ALGORITHMS_CERT, KEY_SHARE = 49, 50, 51


class Extension(NamedTuple):
    """What there is to know of an extension beside its number: its name, and the server's messages
    that may answer one that was offered."""

    name: str
    answered: tuple[str, ...] = ()


SERVER, RETRY = "ServerHello", "HelloRetryRequest"
ENCRYPTED, ENTRY = "EncryptedExtensions", "CertificateEntry"
EXTENSIONS = {
    SERVER_NAME: Extension("server_name", (ENCRYPTED,)),
    MAX_FRAGMENT_LENGTH: Extension("max_fragment_length", (ENCRYPTED,)),
    STATUS_REQUEST: Extension("status_request", (ENTRY,)),
    SUPPORTED_GROUPS: Extension("supported_groups", (ENCRYPTED,)),
    11: Extension("ec_point_formats"),
    SIGNATURE_ALGORITHMS: Extension("signature_algorithms"),
    ALPN: Extension("alpn", (ENCRYPTED,)),
    SIGNED_CERTIFICATE_TIMESTAMP: Extension("signed_certificate_timestamp", (ENTRY,)),
    PADDING: Extension("padding"),
    22: Extension("encrypt_then_mac"),
    23: Extension("extended_master_secret"),
    27: Extension("compress_certificate"),
    RECORD_SIZE_LIMIT: Extension("record_size_limit", (ENCRYPTED,)),
    35: Extension("session_ticket"),
    PRE_SHARED_KEY: Extension("pre_shared_key", (SERVER,)),
    EARLY_DATA: Extension("early_data", (ENCRYPTED,)),
    SUPPORTED_VERSIONS: Extension("supported_versions", (SERVER, RETRY)),
    COOKIE: Extension("cookie", (RETRY,)),
    PSK_KEY_EXCHANGE_MODES: Extension("psk_key_exchange_modes"),
    CERTIFICATE_AUTHORITIES: Extension("certificate_authorities"),
    OID_FILTERS: Extension("oid_filters"),
    POST_HANDSHAKE_AUTH: Extension("post_handshake_auth"),
    SIGNATURE_ALGORITHMS_CERT: Extension("signature_algorithms_cert"),
    KEY_SHARE: Extension("key_share", (SERVER, RETRY)),
}

# Suites (§B.4), groups (§4.2.7), signature schemes (§4.2.3).
AES_128_GCM_SHA256, AES_256_GCM_SHA384, CHACHA20_POLY1305_SHA256 = 0x1301, 0x1302, 0x1303
SECP256R1, SECP384R1, SECP521R1, X25519, X448, X25519MLKEM768 = 23, 24, 25, 29, 30, 0x11EC
RSA_PKCS1_SHA1, ECDSA_SHA1 = 0x0201, 0x0203
RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512 = 0x0401, 0x0501, 0x0601
ECDSA_SECP256R1_SHA256, ECDSA_SECP384R1_SHA384, ECDSA_SECP521R1_SHA512 = 0x0403, 0x0503, 0x0603
RSA_PSS_RSAE_SHA256, RSA_PSS_RSAE_SHA384, RSA_PSS_RSAE_SHA512 = 0x0804, 0x0805, 0x0806
ED25519, ED448, RSA_PSS_PSS_SHA256 = 0x0807, 0x0808, 0x0809

# Alerts (§6).
CLOSE_NOTIFY, UNEXPECTED_MESSAGE, BAD_RECORD_MAC, RECORD_OVERFLOW = 0, 10, 20, 22
HANDSHAKE_FAILURE, BAD_CERTIFICATE, UNSUPPORTED_CERTIFICATE, CERTIFICATE_REVOKED = 40, 42, 43, 44
CERTIFICATE_EXPIRED, CERTIFICATE_UNKNOWN, ILLEGAL_PARAMETER, UNKNOWN_CA = 45, 46, 47, 48
ACCESS_DENIED, DECODE_ERROR, DECRYPT_ERROR, PROTOCOL_VERSION = 49, 50, 51, 70
INSUFFICIENT_SECURITY, INTERNAL_ERROR, INAPPROPRIATE_FALLBACK, USER_CANCELED = 71, 80, 86, 90
MISSING_EXTENSION, UNSUPPORTED_EXTENSION, UNRECOGNIZED_NAME = 109, 110, 112
CERTIFICATE_REQUIRED, NO_APPLICATION_PROTOCOL = 116, 120

# The random of a ServerHello that is a HelloRetryRequest (§4.1.3): SHA-256("HelloRetryRequest").
RETRY_RANDOM = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
# The ends of a random that say "I could have done more" (§4.1.3).
DOWNGRADE_MARKS = (b"DOWNGRD\x01", b"DOWNGRD\x00")

DEFAULT_SCHEMES = (
    ECDSA_SECP256R1_SHA256,
    ECDSA_SECP384R1_SHA384,
    ED25519,
    RSA_PSS_RSAE_SHA256,
    RSA_PSS_RSAE_SHA384,
    RSA_PSS_RSAE_SHA512,
)

ALERT_NAMES = {
    0: "close_notify", 10: "unexpected_message", 20: "bad_record_mac", 22: "record_overflow",
    40: "handshake_failure", 42: "bad_certificate", 43: "unsupported_certificate",
    44: "certificate_revoked", 45: "certificate_expired", 46: "certificate_unknown",
    47: "illegal_parameter", 48: "unknown_ca", 49: "access_denied", 50: "decode_error",
    51: "decrypt_error", 70: "protocol_version", 71: "insufficient_security",
    80: "internal_error", 86: "inappropriate_fallback", 90: "user_canceled",
    109: "missing_extension", 110: "unsupported_extension", 112: "unrecognized_name",
    113: "bad_certificate_status_response", 115: "unknown_psk_identity",
    116: "certificate_required", 120: "no_application_protocol",
}  # fmt: skip
MESSAGE_NAMES = {
    0: "hello_request", 1: "client_hello", 2: "server_hello", 4: "new_session_ticket",
    5: "end_of_early_data", 8: "encrypted_extensions", 11: "certificate",
    13: "certificate_request", 15: "certificate_verify", 20: "finished", 24: "key_update",
    254: "message_hash",
}  # fmt: skip
RECORD_NAMES = {20: "change_cipher_spec", 21: "alert", 22: "handshake", 23: "application_data"}
SUITE_NAMES = {
    AES_128_GCM_SHA256: "TLS_AES_128_GCM_SHA256",
    AES_256_GCM_SHA384: "TLS_AES_256_GCM_SHA384",
    CHACHA20_POLY1305_SHA256: "TLS_CHACHA20_POLY1305_SHA256",
}
GROUP_NAMES = {X25519: "X25519", SECP256R1: "P-256", SECP384R1: "P-384"}
