"""Training on the shards: thin adapters over TRL, what they start from, and what the trainer will really see."""
