"""Counts, sums, means, variances, histograms and cross tables, exact or with noise."""
