"""The catalogue of known bugs (`wrong`), correct programs of other shapes (`right`), and the score of the verifier."""
