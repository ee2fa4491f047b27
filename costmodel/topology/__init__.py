"""Which links a group of ranks runs over: machines, slices, placements."""
