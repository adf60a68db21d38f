"""The selector: which strategy, at which interval, within the accuracy that a user may lose."""
