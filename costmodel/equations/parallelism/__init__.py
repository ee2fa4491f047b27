"""Ways to spread a training step: the layout, its rules, tensor, data and pipeline parallelism."""
