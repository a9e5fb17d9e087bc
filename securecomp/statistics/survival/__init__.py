"""Survival analysis: Kaplan-Meier curves, log-rank tests and Cox regression."""
