"""An analytical roofline cost model for training large language models on TPU and GPU clusters."""
