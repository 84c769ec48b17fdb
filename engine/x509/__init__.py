"""What is believed of a client's certificates: read, judged, and led back to a root (RFC 5280)."""
