"""Demonstrations on real data; each compares with the plaintext result."""
