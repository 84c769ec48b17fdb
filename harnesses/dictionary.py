"""A libFuzzer dictionary made from the engine's own code points.

Nothing here is typed by hand: a code point that the engine learns is in the next campaign's
dictionary. What a number's name begins with says how wide it is on the wire and what stands in
front of it there.
"""

from __future__ import annotations

import sys
from pathlib import Path

from engine import codepoints

RECORD_TYPES = ("CHANGE_CIPHER_SPEC", "ALERT", "HANDSHAKE", "APPLICATION_DATA")
# One small byte each, which the fuzzer finds alone.
LEFT_OUT = ("ALERT_LEVEL_", "PSK_", "UPDATE_", "HOST_NAME")
TWO_BYTES = ("EXT_", "TLS_", "VERSION_")


def entries() -> dict[str, bytes]:
    """Each token by its name: code points as they stand in a message, and the headers they open."""
    tokens: dict[str, bytes] = {}
    for name, value in vars(codepoints).items():
        if name.startswith("_") or type(value) is not int:
            continue
        if name.startswith("ALERT_") and not name.startswith("ALERT_LEVEL_"):
            tokens[name] = bytes([codepoints.ALERT_LEVEL_FATAL, value])
        elif name in RECORD_TYPES:
            # A record's header up to the high byte of its length.
            tokens[name] = bytes([value]) + codepoints.VERSION_TLS_1_2.to_bytes(2) + b"\0"
        elif name.startswith(LEFT_OUT):
            continue
        elif (
            name.startswith(TWO_BYTES) or _is_group(name, value) or value in codepoints.SCHEME_NAMES
        ):
            tokens[name] = value.to_bytes(2)
        elif value <= 0xFF:
            # What is left are message types: a message's header up to the low byte of its length.
            tokens[f"MESSAGE_{name}"] = bytes([value]) + b"\0\0"
    for group, length in codepoints.SHARE_LENGTHS.items():
        name = codepoints.GROUP_NAMES[group]
        tokens[f"SHARE_{name}"] = group.to_bytes(2) + length.to_bytes(2)
    for extension, name in codepoints.EXTENSION_NAMES.items():
        tokens[f"EMPTY_{name}"] = extension.to_bytes(2) + b"\0\0"
    return tokens


def _is_group(name: str, value: int) -> bool:
    """A group's number is also a content or message type's (23, 24), so its name decides."""
    return codepoints.GROUP_NAMES.get(value, "").replace("-", "") == name


def render() -> str:
    """The dictionary's text: one `name="\\xNN..."` a line, sorted, each token once."""
    seen: set[bytes] = set()
    lines = []
    for name, token in sorted(entries().items()):
        if token not in seen:
            seen.add(token)
            value = "".join(f"\\x{byte:02x}" for byte in token)
            lines.append(f'{name.replace("-", "_")}="{value}"\n')
    return "".join(lines)


def write(path: Path) -> None:
    """Writes the dictionary, for `-dict=PATH`."""
    path.write_text(render(), encoding="ascii")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
