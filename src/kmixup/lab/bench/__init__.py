"""Benchmarks: the cost of mixing, measured on this machine."""
