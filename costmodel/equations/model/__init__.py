"""What a decoder holds and does: parameters, FLOPs of a token, KV cache."""
