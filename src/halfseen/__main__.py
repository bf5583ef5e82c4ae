"""``python -m halfseen``."""

from halfseen.cli import app

app()
