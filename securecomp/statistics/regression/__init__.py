"""Generalised linear models: formulas, designs, fitting and their results."""
