"""Wrappers: features that work around any mixer, each with its own draw around the inner draw."""
