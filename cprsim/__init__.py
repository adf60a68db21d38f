"""cprsim: what failures cost a training job, and what to do about it."""

__version__ = "0.1.0"
