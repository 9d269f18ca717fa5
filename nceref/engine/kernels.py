"""The versions and kernels on which the last digits of a long computation depend."""


def kernels() -> str:
    """NumPy with its vector extensions and BLAS with its kernel and threads, such as a replay of training names.

    Training repeats rounding thousands of times, so that its numbers are those of one kernel.
    """
    import numpy as np

    extensions = np.show_config(mode="dicts").get("SIMD Extensions", {})
    levels = [*extensions.get("baseline", ()), *extensions.get("found", ())]
    return f"NumPy {np.__version__} ({' '.join(levels) or 'no vector extensions'}), {_blas()}"


def _blas() -> str:
    from nceref.output.words import counted

    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return "a BLAS of unknown kernel"
    libraries = (one for one in threadpool_info() if one["user_api"] == "blas")
    shown = {
        f"{one['internal_api']} {one['version']} ({one.get('architecture') or 'unknown kernel'},"
        f" {counted(one['num_threads'], 'thread')})"
        for one in libraries
    }
    return " and ".join(sorted(shown)) or "a BLAS of unknown kernel"
