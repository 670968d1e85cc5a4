"""The lab: data, networks, training and their tests; nothing in the library needs it."""
