raise SyntaxError("\x1b[2J\ud800", ("\x1b[2J\ud800", 10**9, 10**9, "\x1b[2J\ud800" * 1000))
