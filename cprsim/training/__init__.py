"""Real models: the kernel, PyTorch, measurements of staleness, trainers in step."""
