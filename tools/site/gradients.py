"""The gradient of a loss on its page: slopes that are proved when the page is made, and the rest as it is declared."""

from functools import cache

from nceref.losses import LossFunction
from nceref.output.markdown_parts import escaped
from nceref.theory.chain import Name, equal
from nceref.theory.derivation import tex
from nceref.theory.proofs import prove
from tools.site.slopes import SLOPES


def section(loss: LossFunction, declared: str) -> str:
    """Formulas where there is a proof of them, and in any case what is declared."""
    if loss.name not in SLOPES:
        return declared
    return f"{slopes(loss.name)}\n\nThe gradient of the whole loss, as it is declared:\n\n{declared}"


@cache
def slopes(name: str) -> str:
    """The slopes of one anchor, once a process; raises for one that does not follow."""
    chain = SLOPES[name]()
    for step in chain.steps:
        prove(chain, step)
    names = "\n".join(f"- ${_defined(one)}$: {escaped(one.meaning)}" for one in chain.names)
    lines = " \\\\\n".join(f"{tex(s.relation.lhs)} &= {tex(s.relation.rhs)}" for s in chain.steps[1:])
    return (
        f"The derivatives of one row:\n\n$$\n\\begin{{aligned}}\n{lines}\n\\end{{aligned}}\n$$\n\n{names}\n\n"
        "The build of this page proves each derivative from the loss, for every number of candidates, and checks that "
        "the loss is that of the package."
    )


def _defined(name: Name) -> str:
    return tex(name.symbol if name.definition is None else equal(name.symbol, name.definition))
