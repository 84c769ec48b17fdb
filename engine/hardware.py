"""Whether this machine encrypts AES in hardware, which decides the server's order of suites.

Without AES instructions AES-GCM is several times slower than ChaCha20-Poly1305, and OpenSSL's
fallback is what keeps it constant-time. The answer is only a default: `Engine.server` takes
`hardware_aes`, so that both orders are tested on any machine.
"""

from __future__ import annotations

import functools
import platform

CPU_FILE = "/proc/cpuinfo"

# Machines on which every processor that runs a Python of today has the instructions. Asked only
# where there is no /proc: macOS and Windows.
_WITH_AES = frozenset({"x86_64", "amd64", "arm64", "aarch64"})


@functools.lru_cache(maxsize=1)
def has_aes() -> bool:
    """True when the processor has AES instructions. Reads /proc/cpuinfo once a process."""
    try:
        with open(CPU_FILE, encoding="ascii", errors="replace") as file:
            text = file.read()
    except OSError:
        return platform.machine().lower() in _WITH_AES
    return names_aes(text)


def names_aes(cpu_text: str) -> bool:
    """Whether a text like /proc/cpuinfo lists `aes` among a processor's features.

    The line is `flags` on x86 and `Features` on ARM. A machine whose processors differ has the
    instructions only when each of them does: a thread may run on any.
    """
    lists = [
        line.partition(":")[2].split()
        for line in cpu_text.splitlines()
        if line.partition(":")[0].strip() in ("flags", "Features")
    ]
    return bool(lists) and all("aes" in features for features in lists)
