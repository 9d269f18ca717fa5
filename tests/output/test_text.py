"""Text of others: nothing reaches a terminal that changes its state, and nothing that cannot be written."""

from sweep import sweep

from nceref.output.text import harmless, printable, reason, shown


class OwnError(BaseException):
    """No subclass of Exception, and nothing that ends a program."""


class SilentError(Exception):
    def __str__(self):
        raise OwnError


class Wrong(str):
    def __getitem__(self, key):
        raise RuntimeError

    def split(self, *words):
        return [self] * 10**9

    def __str__(self):
        return self


@sweep(
    ("given", "line"),
    [
        ("τ ≤ 1, 猫 é ̅", "τ ≤ 1, 猫 é ̅"),
        ("  one\n\ttwo\r\n\x1f\x85\u2028\xa0\u3000three ", "one two three"),
        ("\x00\x07\x08\x1b[31m\x1b]0;title\x07\x7f", r"\x00\x07\x08\x1b[31m\x1b]0;title\x07\x7f"),
        ("\x9b31m\x90\xad", r"\x9b31m\x90\xad"),
        ("a\u202eb\u2066c\u200f\u200b\u200d\ufeff", r"a\u202eb\u2066c\u200f\u200b\u200d\ufeff"),
        ("\udcff\ud800", r"\udcff\ud800"),
        ("\ue000\U000e0001\U0010ffff", r"\ue000\U000e0001\U0010ffff"),
        (ValueError("[red]x[/]"), "[red]x[/]"),
        (SilentError(), "(SilentError without a text)"),
        (Wrong("a\x1bb"), r"a\x1bb"),
        ("\n ::error file=a::b", r"\x3a:error file=a::b"),
        ("a::b ##[c] ####vso[d] ##[e", r"a::b #\x23[c] ###\x23vso[d] #\x23[e"),
        (": : ## [a] #[b] ##c.d[e]", ": : ## [a] #[b] ##c.d[e]"),
        ("", ""),
    ],
)
def test_the_line_is_printable_and_says_what_was_there(given, line):
    assert printable(given) == line
    assert line.isprintable()
    assert printable(line) == line
    line.encode()


def test_a_long_text_is_cut_to_its_limit():
    assert printable("x" * 10**6) == "x" * 297 + "..."
    assert printable("x" * 300) == "x" * 300
    assert printable("\x00" * 10**6, 60) == r"\x00" * 14 + r"\..."
    assert printable(" " * 10**6 + "x", 60) == ""


def test_every_character_is_printable_or_escaped_and_lines_stay():
    every = "".join(map(chr, (*range(0x3000), *range(0xD700, 0xFFFF + 1), *range(0x1F000, 0x110000, 997))))
    shown = harmless(every)
    assert shown.replace("\n", "").replace("\t", "").isprintable()
    assert {c for c in every if c.isprintable()} <= set(shown)
    assert shown.count("\\") == 1 + sum(not c.isprintable() and c not in "\n\t" for c in every)
    assert harmless("a\n\tb\n") == "a\n\tb\n"
    assert harmless("::a\n \t::b::\nc ::d\n\x1b::e") == "\\x3a:a\n \t\\x3a:b::\nc ::d\n\\x1b::e"
    assert type(printable(Wrong("x"))) is str


class Unshowable:
    def __repr__(self):
        raise SystemExit(3)


@sweep(
    ("value", "beginning"),
    [
        ("\x1b[31m", r"'\x1b[31m'"),
        ("x" * 10**6, "'xxxxxxxxxxxx"),
        ([1.5] * 10**6, "[1.5, 1.5, "),
        (10**5000, "a value of type int"),
        (Unshowable(), "a value of type Unshowable"),
        (type("\x1b", (), {})(), "<"),
    ],
    ids=["escape", "text", "list", "integer", "raising", "name"],
)
def test_a_value_stands_in_a_message_in_a_few_printable_characters(value, beginning):
    assert shown(value).startswith(beginning)
    assert shown(value).isprintable()
    assert len(shown(value)) <= 100


def test_an_exception_stands_in_a_message_with_its_type():
    assert reason(KeyError("a\nb\x1b")) == r"KeyError: 'a\nb\x1b'"
    assert reason(SilentError()) == "SilentError: (SilentError without a text)"
