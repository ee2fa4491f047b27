"""What is true: every cost as a sympy equation. No input or output, no catalog, no numpy."""
