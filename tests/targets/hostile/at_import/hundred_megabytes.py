raise RuntimeError("a" * 10**8)
