"""Where the work is done: in this process with what does not fit in memory on disk, or on a cluster."""
