"""One program for each tool: it reads tables, estimates, and writes what it found."""
