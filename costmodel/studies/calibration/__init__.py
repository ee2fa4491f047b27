"""Fitting constants of the catalog to a user's own measurements: what `costmodel calibrate` does."""
