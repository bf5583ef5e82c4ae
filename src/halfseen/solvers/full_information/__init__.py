"""``full``: every value, and every hole: the top of the likelihood of what is seen."""
