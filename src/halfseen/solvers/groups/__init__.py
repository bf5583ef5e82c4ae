"""Groups of rows: one law for all, one covariance with means of their own, or laws of their own."""
