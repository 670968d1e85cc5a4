"""Searches for k and alpha on validation samples, and their page."""
