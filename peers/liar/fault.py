"""What the client says when the other side is wrong."""

from __future__ import annotations


class ServerFault(Exception):
    """The server broke a rule. ``rule`` names the rule with its section; ``detail`` says how."""

    def __init__(self, rule: str, detail: str = "") -> None:
        super().__init__(f"{rule}: {detail}" if detail else rule)
        self.rule = rule
        self.detail = detail


class ScriptError(AssertionError):
    """A step of a script makes no sense after what came before it; nobody broke a rule by that."""


def check(condition: object, rule: str, detail: str = "") -> None:
    """Raise `ServerFault` unless the condition holds."""
    if not condition:
        raise ServerFault(rule, detail)
