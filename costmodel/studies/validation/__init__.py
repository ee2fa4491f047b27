"""Measured runs, kernels and collectives beside what the equations predict for them: one module a kind of measurement."""
