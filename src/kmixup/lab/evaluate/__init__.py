"""How good a trained network is: on the data as they are, and under shifts."""
