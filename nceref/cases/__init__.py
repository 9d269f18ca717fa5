"""Cases: designed inputs of a loss, its reference and bounds on them, and the judgment of an answer."""
