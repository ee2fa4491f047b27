"""What `python -m costmodel.generate` wrote from the equations; never edited by hand."""
