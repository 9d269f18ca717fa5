from nceref.errors import TargetError

raise TargetError("\x1b[2J\ud800")
