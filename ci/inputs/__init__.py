"""What is done with one input: run it, make it smaller, see what it does in another tree."""
