"""Source 003, second table: a negative is more similar than the positive."""

from nceref.theory.table import Table
from nceref.theory.tables.temperature_easy import COLUMNS, compare

SIMILARITIES = (0.25, 0.5, -0.45, -0.1)

# Temperature, similarity over temperature, softmax and loss, as printed: three exponents have lost their "e".
PUBLISHED = (
    (1.0, "[0.25, 0.5, -0.45, -0.1]", ("0.2869", "0.3684", "0.1425", "0.2022"), "1.2486"),
    (0.5, "[ 0.5, 1.0, -0.9, -0.2]", ("0.2948", "0.4861", "0.0727", "0.1464"), "1.2214"),
    (0.05, "[5, 10, -9, -2]", ("6.6e-03", "0.9933", "5.5e-09", "6.1-06"), "5.0067"),
    (0.01, "[ 25, 50, -45, -10]", ("1.3e-11", "1.00", "5.5-42", "8.7-27"), "25"),
)

TABLE = Table(
    name="temperature-hard",
    title="Temperature, softmax and loss when a negative is the most similar",
    source="Source 003, section 4, second table; similarities [0.25, 0.5, -0.45, -0.1], the positive first",
    columns=COLUMNS,
    rows=lambda: compare(SIMILARITIES, PUBLISHED),
    note=(
        "The source leaves out the e of 6.1-06, 5.5-42 and 8.7-27, which are read as 6.1e-06, 5.5e-42 and 8.7e-27. "
        "The losses contradict the conclusion drawn from them, that a lower temperature means a higher loss here: from "
        "1 to 0.5 the loss falls. It rises toward zero temperature only below the temperature at which the expected "
        "similarity equals that of the positive."
    ),
)
