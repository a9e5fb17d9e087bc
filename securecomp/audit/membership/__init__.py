"""Membership inference: telling whether a row was in a model's training data."""
