"""The lab: data sets, networks, training and evaluation to re-run the paper with.

Needs the extra `kmixup[lab]`; nothing in the library imports it.
"""
