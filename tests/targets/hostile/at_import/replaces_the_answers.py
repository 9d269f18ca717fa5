from nceref.targets.process import messages

messages.target_message = lambda target: ("refused", {"error": "UnavailableError", "message": "pip install x"})


def f(x, y):
    return 0.0
