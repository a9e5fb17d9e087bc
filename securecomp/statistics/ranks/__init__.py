"""Medians, quantiles, the largest site and hidden scores, computed on shares."""
