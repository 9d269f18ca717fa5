"""`pytest --nceref`: the targets of a manifest as tests, without a test file.

Where nceref is installed, every run of pytest imports this file: without the option it does and imports nothing.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

LONGEST_NAME = 1000
"""Characters of the name of a test that are shown."""
_MANIFESTS = pytest.StashKey[dict[Path, Any]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--nceref``."""
    text = (
        "test the losses of nceref.toml, or of [tool.nceref] in pyproject.toml; another manifest is given like a test"
        " file, and then only what is given is collected"
    )
    parser.getgroup("nceref").addoption("--nceref", action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Read the manifests; raise `pytest.UsageError` where there is none, or one cannot be read."""
    if not config.getoption("nceref"):
        return
    from nceref.errors import NcerefError
    from nceref.output.text import harmless

    folder = config.invocation_params.dir
    try:
        # An error by itself where NumPy is too old.
        import nceref.losses  # noqa: F401
        from nceref.verification.manifest.read import read_manifest

        if not (paths := [path for path in map(_path, config.args) if path.endswith(".toml")]):
            paths = [_manifest_near(config)]
            config.args.append(paths[0])
        # As pytest writes the files that it collects: without `..`, with symbolic links.
        full = [Path(os.path.abspath(folder / path)) for path in paths]  # noqa: PTH100 - resolve follows links
        # As they are named from here, for the places in messages.
        manifests = {path: read_manifest(os.path.relpath(path), "--nceref") for path in full}
    except NcerefError as error:
        raise pytest.UsageError(harmless(str(error))) from None
    config.stash[_MANIFESTS] = manifests


def _path(argument: str) -> str:
    return argument.partition("::")[0]


def _manifest_near(config: pytest.Config) -> str:
    from nceref.verification.manifest.read import find_manifest

    folders = dict.fromkeys((config.invocation_params.dir, config.rootpath))
    for folder in folders:
        if path := find_manifest(folder, "--nceref"):
            return path
    msg = (
        f"--nceref needs a manifest, and in {' and '.join(map(str, folders))} is neither nceref.toml nor a"
        " pyproject.toml with [tool.nceref]; write one, or give its path as that of a test file"
    )
    raise pytest.UsageError(msg)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "ManifestFile | None":
    """Collect a manifest."""
    known = file_path in parent.config.stash.get(_MANIFESTS, {})
    return ManifestFile.from_parent(parent, path=file_path) if known else None


class ManifestFile(pytest.File):
    """A manifest, as pytest collects it."""

    def collect(self) -> Iterator[pytest.Item]:
        """The checks of its targets, and one for whatever is wrong in it."""
        from nceref.output.text import printable
        from nceref.verification.manifest.checks import checks_of

        has_groups = self.config.pluginmanager.hasplugin("xdist")
        for check in checks_of(self.config.stash[_MANIFESTS][self.path]):
            # Names are anybody's, and pytest prints them as they are.
            item = ManifestItem.from_parent(self, name=printable(check.name, LONGEST_NAME), check=check)
            if has_groups:
                # With --dist loadgroup, all checks of a target run in one worker.
                item.add_marker(pytest.mark.xdist_group(printable(check.target, LONGEST_NAME)))
            yield item


class ManifestItem(pytest.Item):
    """A check of a manifest, as pytest runs it."""

    def __init__(self, *, check: Any, **given: Any) -> None:
        super().__init__(**given)
        self._check = check

    def runtest(self) -> None:
        """Run the check; what fails is a sentence, without a traceback of this package."""
        from nceref.errors import NcerefError
        from nceref.output.text import harmless

        sentence = ""
        try:
            self._check.run()
        except pytest.skip.Exception as skipped:
            # Skipped by the line of the manifest, in place of one of this package.
            raise pytest.skip.Exception(harmless(str(skipped)), _use_item_location=True) from None
        except pytest.xfail.Exception as expected:
            raise pytest.xfail.Exception(harmless(str(expected))) from None
        except (AssertionError, NcerefError) as error:
            sentence = harmless(str(error))
        if sentence:
            pytest.fail(sentence, pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        """The place of the check in the manifest; pytest counts lines from 0."""
        return self.path, self._check.line - 1, self.name
