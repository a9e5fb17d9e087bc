"""Membership inference: can somebody tell whether a row was in the training data?"""
