"""Which answers are too close to be told apart."""

TIE = 0.05
"""Times that differ by this share or less are not told apart: no model of this kind is nearer to measurements."""
