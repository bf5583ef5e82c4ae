"""Whether the assumptions of the theory are met by the data."""

from halfseen.diagnostics.assumptions import Diagnosis, Share, diagnose

__all__ = ["Diagnosis", "Share", "diagnose"]
