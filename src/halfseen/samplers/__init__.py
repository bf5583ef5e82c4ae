"""Samplers of Gaussians restricted to sets."""
