"""Upper and lower limits that are reported: of means, quantiles, tolerance and next values."""
