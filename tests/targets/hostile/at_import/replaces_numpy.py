import sys

sys.modules["numpy"] = sys.modules["nceref"] = None


def f(x, y):
    gap = x - y
    return (gap * gap).sum() / len(x)
