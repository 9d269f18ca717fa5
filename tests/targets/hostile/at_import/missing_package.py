raise ModuleNotFoundError("\x1b[2J\ud800", name="\x1b[2J\ud800")
