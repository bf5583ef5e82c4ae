"""What can be said with a fitted Gaussian: how sure it is, how well it fits, what the holes hold."""
