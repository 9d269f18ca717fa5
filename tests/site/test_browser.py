"""The fixtures themselves: a fault of a page fails its test."""

import pytest

FAULTS = {
    "": "<p>fine</p>",
    "console": "<script>console.error('wrong')</script>",
    "exception": "<script>throw new Error('wrong')</script>",
    "request": "<script>fetch('http://192.0.2.1/picture.png').catch(() => 0)</script>",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_seen(open_page, tmp_path, fault):
    path = tmp_path / "page.html"
    path.write_text(f"<!doctype html><title>page</title>{FAULTS[fault]}")
    open_page(path.as_uri()).wait_for_timeout(100)
    seen = open_page.faults.copy()
    open_page.faults.clear()
    assert bool(seen) == bool(fault)


def test_accessibility(open_page, accessibility_faults, tmp_path):
    path = tmp_path / "page.html"
    path.write_text("<!doctype html><title>page</title><main><img src='data:,'></main>")
    assert any("image-alt" in fault for fault in accessibility_faults(open_page(path.as_uri())))
