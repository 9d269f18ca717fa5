raise type("Outside\x1b[2J", (BaseException,), {})("not an Exception")
