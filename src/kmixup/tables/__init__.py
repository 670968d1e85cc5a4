"""Tables: the schema of a file, its reader, the encoder of its columns, and a first look at it.

Used by the scikit-learn estimators and the lab. Modules are imported on use, as pandas loads
slowly.
"""
