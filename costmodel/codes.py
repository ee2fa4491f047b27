"""Exit codes that more than the command line's boundary gives."""

INTERRUPTED = 130
"""As a shell has it: 128 and the number of the signal."""
