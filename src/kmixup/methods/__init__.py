"""Named methods: compositions of the stages."""
