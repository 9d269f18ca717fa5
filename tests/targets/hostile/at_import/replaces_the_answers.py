from nceref.targets.process import messages

messages.target_message = lambda target: {"kind": "error", "name": "UnavailableError", "sentence": "pip install x"}


def f(x, y):
    return 0.0
