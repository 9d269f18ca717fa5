class TextRaises(Exception):
    def __str__(self):
        raise RuntimeError("no text either")


raise TextRaises
