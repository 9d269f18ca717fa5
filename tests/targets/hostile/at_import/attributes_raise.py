def __getattr__(name):
    raise RuntimeError("\x1b[2J\ud800")


def __dir__():
    raise RuntimeError("\x1b[2J\ud800")
