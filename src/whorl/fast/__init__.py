"""Kernels: what the library computes, said faster. Arrays in, arrays out."""
