"""Codebooks: the agreed meaning of every column, and each site's check of its own rows."""
