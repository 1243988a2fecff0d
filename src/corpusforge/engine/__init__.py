"""Engines run a stage's functions over partitions. `local` is the only one so far."""
