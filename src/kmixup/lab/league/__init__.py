"""Which method at an equal budget: all of them tuned alike, tested once, and ranked."""
