"""k-mixup in the words of other frameworks: one module for each, imported only on use."""
