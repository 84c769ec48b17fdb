"""The conversations, a file a subject."""
