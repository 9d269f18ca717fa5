"""Files of the commands: replaced as a whole, links followed, and nobody else's lost."""

import os
from pathlib import Path

import pytest


def test_files_are_replaced_and_links_stay_links(run, tmp_path):
    (tmp_path / "there").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "there")
    assert run("derive", "nce-optimum", "--out", str(tmp_path / "link"))[0] == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there").read_text(encoding="utf-8").startswith("Noise-contrastive")
    assert run("derive", "nce-optimum", "--out", "-")[1].startswith("Noise-contrastive")
    assert run("derive", "nce-optimum", "--out", os.devnull)[0] == 0
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize(("name", "content"), [("README.md", "# Mine"), ("manifest.json", '{"name": "mine"}')])
def test_figures_refuse_to_overwrite_what_is_not_theirs(run, tmp_path, name, content):
    (tmp_path / name).write_text(content)
    status, _, err = run("figures", "sphere-force", "--out", str(tmp_path))
    assert status == 2
    assert "would be lost" in err
    assert (tmp_path / name).read_text() == content


def test_derive_lists_topics_and_writes_a_file(run, tmp_path):
    assert "tau-zero" in run("derive")[1]
    status, out, _ = run("derive", "nce-optimum", "--latex", "--out", str(tmp_path / "nce.tex"))
    assert (status, out) == (0, "")
    assert "\\begin{align*}" in (tmp_path / "nce.tex").read_text(encoding="utf-8")
