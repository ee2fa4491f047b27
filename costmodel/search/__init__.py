"""Layouts: their grammar, the candidates, the evaluation of one and of all of them."""
