"""CKKS on SEAL, through TenSEAL: contexts, and the circuit for the sigmoid."""
