"""k-mixup inside other frameworks: one module for each, imported only on use."""
