"""Attacks that reconstruct inputs from models, gradients and messages."""
