"""What a target is asked: the designed corpus, the smallest input that fails, and a script of it."""
