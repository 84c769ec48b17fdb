"""Example servers over the engine: one epoll loop, the standard library, no socket object kept."""
