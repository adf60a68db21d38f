"""PyTorch models in experiments with failures; their public names are those of `cprsim.torch`."""
