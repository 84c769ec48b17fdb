"""The figures of the project: each module measures one thing, prints a table and writes JSON."""
