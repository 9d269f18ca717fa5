"""Writes the vectors of the package that take longest: `python -m tools.large_vectors`, two minutes on two cores.

These are the large case of each loss, and the cases on several ranks; the small ones stay as they are.
"""

from concurrent.futures import ProcessPoolExecutor

from nceref.engine.settings import process_count
from nceref.losses import all_losses, get_loss
from nceref.output.files import replace
from nceref.verification.vectors.build import with_bugs
from nceref.verification.vectors.large import large_case
from nceref.verification.vectors.packed import packed
from nceref.verification.vectors.ranks import RanksCase
from nceref.verification.vectors.ranks_build import ranks_cases
from nceref.verification.vectors.ranks_file import ranks_file
from nceref.verification.vectors.records import VectorCase
from nceref.verification.vectors.store import DATA, FORMAT, package_files, read_vectors

ON_RANKS = ("clip", "info_nce", "nt_xent", "siglip", "supcon_out")
"""Losses that trainers compute on several ranks."""


def made_large(name: str) -> tuple[VectorCase, ...]:
    """The large case of a loss, with the known bugs that it sees."""
    loss = get_loss(name).declaration
    return tuple(with_bugs(loss, [large_case(loss)]))


def made_on_ranks(name: str) -> tuple[RanksCase, ...]:
    """The cases of a loss on several ranks."""
    return tuple(ranks_cases(get_loss(name).declaration))


def main() -> None:
    """Write the files that have these cases, and the manifest of all."""
    small = read_vectors().cases
    with ProcessPoolExecutor(process_count()) as pool:
        large = [case for each in pool.map(made_large, all_losses()) for case in each]
        ranks = [case for each in pool.map(made_on_ranks, ON_RANKS) for case in each]
    for files in (packed(large, FORMAT) | ranks_file(ranks), package_files(small)):
        for name, content in files.items():
            replace(DATA / name, content)


if __name__ == "__main__":
    main()
