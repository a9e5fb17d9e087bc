"""Uniqueness of rows in a file, and the risk that people in it are re-identified."""
