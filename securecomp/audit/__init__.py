"""Attacks on one's own models and files: what leaked, measured before somebody else does."""
