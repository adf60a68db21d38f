"""When and where failures strike: distributions, fits, and the sources that draw or replay them."""
