"""Experiments with k-mixup: data, networks, training and evaluation; needs the extra `lab`."""
