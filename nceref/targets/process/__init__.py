"""A process for a target: the data that go to it and come back, its tree of processes, and its isolation."""
