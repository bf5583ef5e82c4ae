"""Compiled leaves: arrays in, arrays out, no objects."""
