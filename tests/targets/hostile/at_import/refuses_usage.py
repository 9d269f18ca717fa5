from nceref.errors import InputError
from nceref.targets import load


def refused(*args, **kwargs):
    raise InputError("`loss` is wrong")


load._resolved = load._taken = load.callee_of = refused


def f(x, y):
    return 0.0
