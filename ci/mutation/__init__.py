"""The judging of mutants: of mutmut's, and of the decisions that the catalogue lists."""
