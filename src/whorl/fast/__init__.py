"""Fast kernels for what the library computes: arrays in, arrays out."""
