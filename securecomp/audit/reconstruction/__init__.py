"""Attacks that reconstruct inputs from models, gradients or messages."""
