"""Training: a trial, what it starts from, the loop, and fleets of small networks."""
