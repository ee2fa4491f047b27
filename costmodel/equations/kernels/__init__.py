"""Kernels on one chip: matrix products, attention, what is bound by memory traffic."""
