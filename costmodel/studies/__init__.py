"""One file a question: each takes names and numbers, and returns a frozen answer."""
