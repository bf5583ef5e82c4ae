"""Groups side by side: what ``fit`` returns when it is asked ``by=``."""
