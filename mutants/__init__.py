"""Planted faults: a catalogue of one-edit bugs, and what applies them to a copy of the tree."""
