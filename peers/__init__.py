"""The other side: clients and servers that are not the engine."""
