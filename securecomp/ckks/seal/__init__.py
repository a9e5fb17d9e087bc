"""CKKS by SEAL, through TenSEAL: contexts, and the circuit of the sigmoid."""
