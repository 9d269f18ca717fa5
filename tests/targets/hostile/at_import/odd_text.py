raise RuntimeError("\x1b[2J\ud800 [red]\u202e\x00")
