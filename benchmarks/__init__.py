"""What halfseen measures about itself: ``python -m benchmarks``."""
