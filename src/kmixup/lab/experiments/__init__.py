"""Grids of trials run by engines and stored as rows, the search for k and alpha, the league."""
