"""halfseen against everyone else: the same tables, each tool in a process of its own."""
