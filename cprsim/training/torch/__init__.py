"""PyTorch models in the machinery of failures; their public names are those of `cprsim.torch`."""
