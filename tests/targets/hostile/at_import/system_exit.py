raise SystemExit("\x1b[2J\ud800")
