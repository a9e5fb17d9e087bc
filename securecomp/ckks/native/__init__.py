"""CKKS on our own kernels: ring, number-theoretic transform, encryption of coefficients."""
