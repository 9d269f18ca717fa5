raise RuntimeError("line\n" * 10**5)
