"""Uniqueness of rows in a file, and the risk of re-identifying the people in it."""
