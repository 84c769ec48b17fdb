"""The pull-request gate: what a change touches, judged (docs/mutation.md)."""
