"""A target on several ranks: its batch in shards, its processes, and what is wrong between ranks."""
