"""Regression: what outcomes depend on, with the rows of the full-information engine."""
